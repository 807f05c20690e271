// Where the control thread leaves a channel's connection, or word of what became of it.
#pragma once

#include <atomic>
#include <mutex>
#include <string>

namespace tutti::tcp {

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

}  // namespace tutti::tcp
