#include "reduce/copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "reduce/kernel.h"

namespace tutti {
namespace {

constexpr std::size_t kMemcpyBytes = 4 << 10;  // the C library's loop serves, for any vectors
constexpr std::size_t kLineBytes = 64;

}  // namespace

void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes, bool past_cache) {
  const bool whole = bytes <= kMemcpyBytes && !past_cache;
  const std::size_t head = whole ? bytes : std::min(bytes, -reinterpret_cast<std::uintptr_t>(to) % kLineBytes);
  if (head > 0) std::memcpy(to, from, head);
  if (head == bytes) return;
  static const Kernel kernel = integer_kernel(DType::uint8, Op::sum);
  static const SourceGroup one{.first = 0, .size = 1, .joins = 0, .partial = false};
  const ReduceSource source{from + head};
  const ReduceTarget target{to + head};
  kernel({.sources = {&source, 1}, .targets = {&target, 1}, .groups = {&one, 1}, .count = bytes - head, .stream = past_cache});
}

}  // namespace tutti
