#include "transport/tcp/receiver.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <string>

namespace tutti::internal::tcp {
namespace {

// The buffer stays in the second-level cache while the kernel writes it and a reduction reads it.
constexpr std::size_t kBuffer = 256 * 1024;

// How far one read may go beyond what is claimed: far enough that many small messages come in one call, little enough
// that the copy of what turns out to be a large posted receive's beginning does not matter.
constexpr std::size_t kReadAhead = 16 * 1024;

// With one part the system has less to copy in and check, and a rank that polls does little else.
ssize_t receive(int fd, std::span<iovec> parts) {
  if (parts.size() == 1) return recv(fd, parts[0].iov_base, parts[0].iov_len, MSG_DONTWAIT);
  msghdr call{};
  call.msg_iov = parts.data();
  call.msg_iovlen = parts.size();
  return recvmsg(fd, &call, MSG_DONTWAIT);
}

}  // namespace

void Receiver::release(std::size_t bytes) {
  assert(claims_.viewing() && header_ && bytes <= left() && bytes <= buffered());
  begin_ += bytes;
  done_ += bytes;
  if (left() == 0) finish_front();
}

bool Receiver::absorb() {
  bool moved = false;
  for (const Claim* claim = front_met(); claim && !claim->viewed; claim = front_met()) {
    const std::size_t bytes = std::min(buffered(), left());
    if (bytes > 0) std::memcpy(claim->data + done_, buffer_.get() + begin_, bytes);
    begin_ += bytes;
    done_ += bytes;
    moved |= bytes > 0;
    if (left() > 0) return moved;
    finish_front();
    moved = true;
  }
  return moved;
}

bool Receiver::can_show_more() const {
  const bool whole = header_ && buffered() >= left();
  return !whole && has_room();
}

std::optional<std::span<const std::byte>> Receiver::shown() const {
  if (!header_ || !claims_.front() || !claims_.front()->viewed) return std::nullopt;
  if (buffered() == 0 && left() > 0) return std::nullopt;
  return std::span(buffer_.get() + begin_, std::min(buffered(), left()));
}

// The claim whose message has begun to arrive.
const Claim* Receiver::front_met() {
  const Claim* claim = claims_.front();
  if (!claim || !parse_header()) return nullptr;
  if (header_->tag != claim->tag) throw TagMismatch{peer_, claim->tag, header_->tag};
  if (header_->total != claim->bytes) throw LengthMismatch{peer_, claim->bytes, header_->total};
  return claim;
}

bool Receiver::parse_header() {
  if (header_) return true;
  if (buffered() < Header::kBytes) return false;
  const std::span<const std::byte, Header::kBytes> bytes(buffer_.get() + begin_, Header::kBytes);
  const std::optional<Header> header = Header::decode(bytes);
  if (!header) throw ChannelClosed{peer_, "the peer sent something that is not a message of version 1"};
  if (header->communicator != communicator_) {
    throw ChannelClosed{peer_, "the peer sent a message of another communicator"};
  }
  if (header->message != claims_.done() || header->offset != 0 || header->length != header->total) {
    throw ChannelClosed{peer_, "the peer sent message " + std::to_string(header->message) +
                                   " or a part of it where all of message " + std::to_string(claims_.done()) +
                                   " was due"};
  }
  header_ = header;
  begin_ += Header::kBytes;
  return true;
}

void Receiver::finish_front() {
  claims_.finish_front();
  header_.reset();
  done_ = 0;
}

// Bytes that the buffer should hold after the next read, at most.
std::size_t Receiver::wanted_in_buffer() const {
  if (header_) return left() + kReadAhead;
  // Unclaimed: to name it. Large and posted: so that the rest can go straight to its memory.
  const Claim* claim = claims_.front();
  if (!claim || (!claim->viewed && claim->bytes > kReadAhead)) return Header::kBytes;
  return Header::kBytes + claim->bytes + kReadAhead;
}

// Moving little to the buffer's start is cheaper than many short reads at its end; a consumer that is shown much has
// enough.
bool Receiver::has_room() const { return end_ < kBuffer || buffered() <= kReadAhead; }

void Receiver::make_room() {
  if (!buffer_) buffer_ = std::make_unique_for_overwrite<std::byte[]>(kBuffer);
  if (begin_ == 0 || buffered() > kReadAhead || (buffered() > 0 && kBuffer - end_ >= kReadAhead)) return;
  std::memmove(buffer_.get(), buffer_.get() + begin_, buffered());
  end_ -= begin_;
  begin_ = 0;
}

bool Receiver::read(int fd) {
  make_room();
  iovec parts[2];
  std::size_t count = 0, straight = 0;
  if (header_ && can_fill()) {  // then nothing is buffered: absorb() has used it up
    straight = left();
    parts[count++] = {claims_.front()->data + done_, straight};
    parts[count++] = {buffer_.get(), kReadAhead};
  } else {
    parts[count++] = {buffer_.get() + end_, std::min(kBuffer - end_, wanted_in_buffer() - buffered())};
  }
  const ssize_t done = receive(fd, {parts, count});
  if (done < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (done < 0) throw ChannelClosed{peer_, std::string("cannot receive: ") + std::strerror(errno)};
  if (done == 0) {
    const bool inside = header_ || buffered() > 0;
    throw ChannelClosed{
        peer_, inside ? "the peer closed the connection in the middle of a message" : "the peer closed the connection"};
  }
  const std::size_t filled = std::min(static_cast<std::size_t>(done), straight);
  done_ += filled;
  end_ += static_cast<std::size_t>(done) - filled;
  absorb();
  return true;
}

std::optional<Tag> Receiver::unclaimed(int fd) {
  if (claims_.front()) return std::nullopt;
  if (!header_ && buffered() < Header::kBytes && fd >= 0) read(fd);
  if (!parse_header()) return std::nullopt;
  return header_->tag;
}

}  // namespace tutti::internal::tcp
