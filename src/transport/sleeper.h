// How a rank sleeps until one of its transports has news: one epoll set holding an eventfd (the bell) and the sockets.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>

namespace tutti::internal {

class Sleeper {
 public:
  Sleeper();
  ~Sleeper();
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  // Edge-triggered: wakes once for each new readiness (read or write) of `fd` after this call.
  void watch(int fd);
  void unwatch(int fd);

  // Thread-safe and async-signal-safe: wakes the sleeper now, or at its next sleep().
  void ring() const;
  int bell() const { return bell_; }  // the eventfd: may be handed to other processes, which ring by writing 1 to it

  // Returns when rung, when a watched fd has news, or when `limit` has passed.
  void sleep(std::chrono::microseconds limit);

  // Whether `fd` was among what ended the last sleep(). News that found no room there ends the next one.
  bool had_news(int fd) const;

 private:
  static constexpr std::size_t kMaxNews = 16;
  int news_[kMaxNews];
  std::size_t news_count_ = 0;
  int epoll_ = -1;
  int bell_ = -1;
};

}  // namespace tutti::internal
