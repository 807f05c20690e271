#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "selection/choose_text.h"
#include "tutti/error.h"

namespace tutti::internal {

// Opened without waiting: a pipe that nobody writes to must not hold up the join.
std::string read_table_file(const std::string& path) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::invalid_argument, "the table " + path + " " + why);
  };
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) refuse("cannot be read: " + std::generic_category().message(errno));
  struct stat about {};
  const bool regular = ::fstat(fd, &about) == 0 && S_ISREG(about.st_mode);
  std::string text(kMaxTableBytes + 1, '\0');
  std::size_t filled = 0;
  ssize_t got = 1;
  while (regular && got > 0 && filled < text.size()) {
    got = ::read(fd, text.data() + filled, text.size() - filled);
    if (got > 0) filled += static_cast<std::size_t>(got);
  }
  const int problem = errno;
  ::close(fd);
  if (!regular) refuse("is not a regular file");
  if (got < 0) refuse("cannot be read: " + std::generic_category().message(problem));
  if (filled > kMaxTableBytes) refuse("has more than " + std::to_string(kMaxTableBytes) + " bytes");
  text.resize(filled);
  return text;
}

}  // namespace tutti::internal
