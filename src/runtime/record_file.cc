#include "runtime/record_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/descriptor.h"

namespace tutti::internal {
namespace {

class OpenFile {
 public:
  explicit OpenFile(int fd) : fd_(above_standard(fd)) {}
  ~OpenFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int fd() const { return fd_; }

 private:
  const int fd_;
};

bool write_all(int fd, const std::string& text) {
  for (std::size_t written = 0; written < text.size();) {
    const ssize_t bytes = ::write(fd, text.data() + written, text.size() - written);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return false;
    written += static_cast<std::size_t>(bytes);
  }
  return true;
}

}  // namespace

std::string write_record(const std::string& directory, const std::string& name, const std::string& text) {
  const auto wrong = [&](int error) { return "cannot write " + directory + "/" + name + ": " + system_words(error); };
  const OpenFile folder(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.fd() < 0) return wrong(errno);
  const std::string unfinished = "." + name + "." + std::to_string(::getpid());
  ::unlinkat(folder.fd(), unfinished.c_str(), 0);  // of a process of that number that died here
  int error = 0;
  {
    const OpenFile file(
        ::openat(folder.fd(), unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (file.fd() < 0) return wrong(errno);
    if (!write_all(file.fd(), text)) error = errno;
  }
  if (error == 0 && ::renameat(folder.fd(), unfinished.c_str(), folder.fd(), name.c_str()) != 0) error = errno;
  if (error == 0) return {};
  ::unlinkat(folder.fd(), unfinished.c_str(), 0);
  return wrong(error);
}

}  // namespace tutti::internal
