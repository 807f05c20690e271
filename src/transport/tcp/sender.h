// The sending half of a TCP channel: messages wait here until the kernel has taken them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "transport/header.h"
#include "transport/transport.h"

namespace tutti::internal::tcp {

class Sender {
 public:
  Sender(std::uint64_t communicator, int peer) : communicator_(communicator), peer_(peer) {}

  void push(const Tag& tag, const std::byte* data, std::size_t bytes);
  bool idle() const { return waiting_.empty(); }
  std::uint64_t sent() const { return sent_; }

  // One system call: hands over as many waiting messages as the kernel takes, headers and payloads gathered. True if it
  // took anything. Throws ChannelClosed. Requires !idle().
  bool write(int fd);

 private:
  struct Message {
    std::array<std::byte, Header::kBytes> header;
    const std::byte* data;
    std::size_t bytes;
    std::size_t size() const { return header.size() + bytes; }
  };
  void taken(std::size_t bytes);

  const std::uint64_t communicator_;
  const int peer_;
  std::deque<Message> waiting_;
  std::size_t front_taken_ = 0;  // bytes of the front message that the kernel has, its header's included
  std::uint64_t pushed_ = 0, sent_ = 0;
};

}  // namespace tutti::internal::tcp
