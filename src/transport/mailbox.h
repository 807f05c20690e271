// Where the control thread leaves the socket that a channel is to use, or word of what became of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "transport/sleeper.h"

namespace tutti::internal {

// Thread-safe.
class Mailbox {
 public:
  Mailbox() = default;
  ~Mailbox();
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  void connected(int fd);               // takes the fd; of several the first is kept, the others are closed
  void failed(const std::string& why);  // of several reasons the first is kept

  // Cheap enough to ask at every turn: whether anything has come since the last take().
  bool has_news() const { return news_.load(std::memory_order_acquire); }

  struct News {
    int fd = -1;      // a connection, told once: the taker's from now on
    std::string why;  // why there is or will be no connection; empty while all is well
  };
  News take();

 private:
  std::mutex mutex_;
  std::atomic<bool> news_{false};
  bool had_connection_ = false;
  News kept_;
};

// The mailboxes of one rank's channels, each made by whoever comes first. Thread-safe.
class Mailboxes {
 public:
  explicit Mailboxes(Sleeper& sleeper) : sleeper_(sleeper) {}

  std::shared_ptr<Mailbox> of(std::uint64_t communicator, int peer);
  void drop(std::uint64_t communicator, int peer);

  // Both wake the sleeper.
  void attach(std::uint64_t communicator, int peer, int fd);
  void fail(std::uint64_t communicator, int peer, const std::string& why);

 private:
  Sleeper& sleeper_;
  std::mutex mutex_;
  std::map<std::pair<std::uint64_t, int>, std::shared_ptr<Mailbox>> mailboxes_;
};

}  // namespace tutti::internal
