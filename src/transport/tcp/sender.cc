#include "transport/tcp/sender.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

namespace tutti::internal::tcp {
namespace {

// Messages gathered in one call. More would save nothing: by then the call is long.
constexpr std::size_t kGathered = 16;
constexpr std::size_t kTogether = 1024;  // bytes

// What is short is made one piece, which the system sends sooner than several.
ssize_t send_all(int fd, std::span<iovec> parts) {
  std::byte together[kTogether];
  std::size_t bytes = 0;
  for (const iovec& part : parts) {
    if (bytes + part.iov_len > kTogether) {
      msghdr call{};
      call.msg_iov = parts.data();
      call.msg_iovlen = parts.size();
      return sendmsg(fd, &call, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    std::memcpy(together + bytes, part.iov_base, part.iov_len);
    bytes += part.iov_len;
  }
  return send(fd, together, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

void Sender::push(const Tag& tag, const std::byte* data, std::size_t bytes) {
  Header header;
  header.communicator = communicator_;
  header.tag = tag;
  header.message = pushed_++;
  header.length = header.total = bytes;
  waiting_.push_back({header.encode(), data, bytes});
}

bool Sender::write(int fd) {
  iovec parts[2 * kGathered];
  std::size_t count = 0, skip = front_taken_;
  for (std::size_t i = 0; i < std::min(kGathered, waiting_.size()); ++i) {
    Message& message = waiting_[i];
    const std::size_t of_header = std::min(skip, message.header.size());
    const std::size_t of_data = skip - of_header;
    if (of_header < message.header.size()) {
      parts[count++] = {message.header.data() + of_header, message.header.size() - of_header};
    }
    if (of_data < message.bytes) {
      parts[count++] = {const_cast<std::byte*>(message.data) + of_data, message.bytes - of_data};
    }
    skip = 0;
  }
  const ssize_t done = send_all(fd, {parts, count});
  if (done < 0) {
    if (errno == EAGAIN || errno == EINTR) return false;
    throw ChannelClosed{peer_, std::string("cannot send: ") + std::strerror(errno)};
  }
  taken(static_cast<std::size_t>(done));
  return true;
}

void Sender::taken(std::size_t bytes) {
  front_taken_ += bytes;
  while (!waiting_.empty() && front_taken_ >= waiting_.front().size()) {
    front_taken_ -= waiting_.front().size();
    waiting_.pop_front();
    ++sent_;
  }
}

}  // namespace tutti::internal::tcp
