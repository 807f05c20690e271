#include "transport/sleeper.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "base/descriptor.h"
#include "tutti/error.h"

namespace tutti::internal {
namespace {

void add(int epoll, int fd, std::uint32_t events) {
  epoll_event event{};
  event.events = events | EPOLLET;
  event.data.fd = fd;
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0) return;
  throw Error(ErrorCode::system, std::string("cannot watch a socket (epoll_ctl): ") + std::strerror(errno));
}

}  // namespace

Sleeper::Sleeper()
    : epoll_(above_standard(epoll_create1(EPOLL_CLOEXEC))),
      bell_(above_standard(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))) {
  try {
    if (epoll_ < 0 || bell_ < 0) {
      throw Error(ErrorCode::system, "cannot make an epoll set and an eventfd: " + system_words(errno));
    }
    add(epoll_, bell_, EPOLLIN);
  } catch (...) {
    if (epoll_ >= 0) close(epoll_);
    if (bell_ >= 0) close(bell_);
    throw;
  }
}

Sleeper::~Sleeper() {
  close(bell_);
  close(epoll_);
}

void Sleeper::watch(int fd) { add(epoll_, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP); }

void Sleeper::unwatch(int fd) { epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr); }

void Sleeper::ring() const {
  const int saved = errno;  // a signal handler must leave it alone
  const std::uint64_t one = 1;
  // Fails only when the eventfd is 2^64 - 2 rings full. Nobody reads it: being edge-triggered, every write is news.
  [[maybe_unused]] const ssize_t written = write(bell_, &one, sizeof one);
  errno = saved;
}

void Sleeper::sleep(std::chrono::microseconds limit) {
  // Rounded up to epoll's milliseconds: the limit only guards against a peer that never rings.
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(limit).count();
  epoll_event news[kMaxNews];
  const int count = epoll_wait(epoll_, news, kMaxNews,
                               static_cast<int>(std::clamp<std::int64_t>(ms, 0, std::numeric_limits<int>::max())));
  news_count_ = static_cast<std::size_t>(std::max(count, 0));
  for (std::size_t i = 0; i < news_count_; ++i) news_[i] = news[i].data.fd;
}

bool Sleeper::had_news(int fd) const { return std::find(news_, news_ + news_count_, fd) != news_ + news_count_; }

}  // namespace tutti::internal
