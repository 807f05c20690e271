#include "run/node_message.h"

#include <algorithm>
#include <cstring>

#include "base/little_endian.h"

namespace tutti::internal::tools {
namespace {

constexpr std::size_t kLengthBytes = 4;
constexpr std::size_t kFixedBytes = 1 + 3 * 4;  // kind, attempt, status, length of the words
constexpr std::size_t kMaxWordsBytes = 4096;

}  // namespace

std::vector<std::byte> encode(const NodeMessage& message) {
  const std::size_t words = std::min(message.words.size(), kMaxWordsBytes);
  std::vector<std::byte> bytes(kLengthBytes + kFixedBytes + words);
  put_le(&bytes[0], static_cast<std::uint32_t>(kFixedBytes + words));
  bytes[4] = static_cast<std::byte>(message.kind);
  put_le(&bytes[5], static_cast<std::uint32_t>(message.attempt));
  put_le(&bytes[9], static_cast<std::uint32_t>(message.status));
  put_le(&bytes[13], static_cast<std::uint32_t>(words));
  std::memcpy(bytes.data() + kLengthBytes + kFixedBytes, message.words.data(), words);
  return bytes;
}

std::optional<NodeMessage> NodeFrames::next() {
  if (broken_ || buffer_.size() < kLengthBytes) return std::nullopt;
  const std::size_t length = get_le<std::uint32_t>(buffer_.data());
  broken_ = length < kFixedBytes || length > kFixedBytes + kMaxWordsBytes;
  if (broken_ || buffer_.size() < kLengthBytes + length) return std::nullopt;
  NodeMessage message;
  const auto kind = std::to_integer<std::uint8_t>(buffer_[4]);
  const std::size_t words = get_le<std::uint32_t>(&buffer_[13]);
  broken_ = kind > static_cast<std::uint8_t>(NodeMessage::Kind::over) || words != length - kFixedBytes;
  if (broken_) return std::nullopt;
  message.kind = static_cast<NodeMessage::Kind>(kind);
  message.attempt = static_cast<std::int32_t>(get_le<std::uint32_t>(&buffer_[5]));
  message.status = static_cast<std::int32_t>(get_le<std::uint32_t>(&buffer_[9]));
  message.words.assign(reinterpret_cast<const char*>(buffer_.data()) + kLengthBytes + kFixedBytes, words);
  buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(kLengthBytes + length));
  return message;
}

}  // namespace tutti::internal::tools
