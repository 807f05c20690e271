// What the library does alike with every descriptor that it makes.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace tutti::internal {

// The same open file under a number above 2, close-on-exec. A program may run with its standard streams closed; what is
// then printed to stderr would go into a socket that had its number. A negative fd, or no number left: -1, with errno.
inline int above_standard(int fd) {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  const int higher = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  ::close(fd);
  errno = error;
  return higher;
}

// Keeps the numbers of the standard streams from what others make, as long as it lives.
class StandardStreamsTaken {
 public:
  StandardStreamsTaken() {
    int fd;
    while ((fd = ::open("/dev/null", O_RDWR | O_CLOEXEC)) >= 0 && fd <= STDERR_FILENO) taken_[fd] = true;
    if (fd >= 0) ::close(fd);
  }
  ~StandardStreamsTaken() {
    for (int fd = 0; fd <= STDERR_FILENO; ++fd)
      if (taken_[fd]) ::close(fd);
  }
  StandardStreamsTaken(const StandardStreamsTaken&) = delete;
  StandardStreamsTaken& operator=(const StandardStreamsTaken&) = delete;

 private:
  bool taken_[STDERR_FILENO + 1] = {};
};

inline bool is_out_of_descriptors(int error) { return error == EMFILE || error == ENFILE; }

// What the system says, and what to do about it where that is known.
inline std::string system_words(int error) {
  const char* advice = error == EMFILE   ? "; raise `ulimit -n`"
                       : error == ENFILE ? "; raise the system's limit, sysctl fs.file-max"
                                         : "";
  return std::generic_category().message(error) + advice;
}

}  // namespace tutti::internal
