#include "transport/shm/private_reader.h"

#include <algorithm>
#include <cerrno>

#include "memory/copy.h"

namespace tutti::internal::shm {

bool PrivateReader::read(const Line& line, std::size_t left, std::byte* to, std::size_t bytes) {
  LanePair& lanes = lines_.lanes();
  lanes.throw_if_withdrawn();
  if (!lanes.connect()) lanes.throw_makes_no_sense("it lent private memory that nobody said could be read");
  const std::uint64_t at = line.at & ~kPrivate, all = line.bytes;
  if (all < left) lanes.throw_makes_no_sense("it lent fewer bytes than the message has");
  const int failure = lanes.who()->memory.read(to, at + (all - left), bytes);
  lanes.throw_if_withdrawn();  // the system may have waited for the memory, and the peer not for the system
  if (failure == 0) return true;
  Lane& out = lanes.out();
  // EFAULT is about the memory of this message alone. All else is about all messages.
  if (failure != EFAULT) out.reads.store(0, std::memory_order_relaxed);
  out.decline.from = all - left;
  out.decline.line.store(declined(lines_.acks().consumed()), std::memory_order_release);
  lanes.notify();
  declined_ = true;
  return false;
}

std::span<const std::byte> PrivateReader::show(const Line& line, std::size_t left) {
  if (shown_ == nullptr) shown_ = std::make_unique_for_overwrite<std::byte[]>(kFragmentBytes);
  const std::size_t bytes = std::min(kFragmentBytes, left);  // they stay in the cache while they are used
  if (!declined_ && read(line, left, shown_.get(), bytes)) return {shown_.get(), bytes};
  return piece(left);
}

// What the peer shows of a declined message.
std::span<const std::byte> PrivateReader::piece(std::size_t left) const {
  const LanePair& lanes = lines_.lanes();
  const Piece& piece = lanes.in().piece;
  if (piece.number.load(std::memory_order_acquire) != pieces_ + 1) {
    if (lanes.is_gone()) lanes.throw_gone();
    return {};
  }
  lanes.throw_if_withdrawn();
  const std::uint64_t at = piece.at, bytes = piece.bytes;
  const std::byte* const data = at < kSymmetricOffset || bytes > left ? nullptr : lanes.theirs().at(at, bytes);
  if (data == nullptr) lanes.throw_makes_no_sense("it shows a piece of a message that is not in its symmetric memory");
  return {data, bytes};
}

void PrivateReader::pass_piece() {
  lines_.lanes().out().decline.taken.store(++pieces_, std::memory_order_release);
  lines_.lanes().notify();
}

std::size_t PrivateReader::take_piece(std::byte* to, std::size_t left) {
  const auto shown = piece(left);
  if (shown.empty()) return 0;
  copy_bytes(to, shown.data(), shown.size());
  pass_piece();
  return shown.size();
}

}  // namespace tutti::internal::shm
