// What the library does alike with every descriptor that it makes.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

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

// Keeps the numbers of the standard streams from what others make, as long as it lives. One at a time: the next waits.
class StandardStreamsTaken {
 public:
  // Where some streams are closed, another thread may have the number of one for a moment: for a file that it reads, or
  // for a descriptor on its way to a higher number. So it tries for a while to take the others too.
  StandardStreamsTaken() {
    // In a forked child it may be held by nobody, for ever.
    for (int i = 0; i < kTries && !lock_.try_lock(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    take();
    if (std::ranges::none_of(taken_, std::identity())) return;
    for (int i = 0; i < kTries && !std::ranges::all_of(taken_, std::identity()); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      take();
    }
  }
  ~StandardStreamsTaken() {
    for (int fd = 0; fd <= STDERR_FILENO; ++fd)
      if (taken_[fd]) ::close(fd);
  }
  StandardStreamsTaken(const StandardStreamsTaken&) = delete;
  StandardStreamsTaken& operator=(const StandardStreamsTaken&) = delete;

 private:
  static constexpr int kTries = 200;
  static std::mutex& one_at_a_time() {
    static std::mutex mutex;
    return mutex;
  }
  void take() {
    int fd;
    while ((fd = ::open("/dev/null", O_RDWR | O_CLOEXEC)) >= 0 && fd <= STDERR_FILENO) taken_[fd] = true;
    if (fd >= 0) ::close(fd);
  }
  std::unique_lock<std::mutex> lock_{one_at_a_time(), std::defer_lock};
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
