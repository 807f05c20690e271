#include "memory/string_copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

#include "memory/copy.h"
#include "memory/quickness.h"

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TUTTI_HAS_STRING_COPY 1
#else
#define TUTTI_HAS_STRING_COPY 0
#endif

namespace tutti::internal {
namespace {

// On an AMD EPYC (Zen 5) an all_gather with messages of 8 KiB takes 1.1 times as long as by vectors if the cores share
// a cache, and with 16 KiB 0.83 times.
constexpr std::size_t kLeastBytes = 12 << 10;
constexpr std::size_t kLineBytes = 64;
// The copies of measure_quickness() take 1.2 to 1.5 times as long as by vectors on that processor, and 10 times and
// more on one that is slow at them.
constexpr int kQuickCopies = 3;

Quickness quickness;

#if TUTTI_HAS_STRING_COPY
// Whole pages, whose sources lie a byte before them within a page: AMD's Zen 3 and 4 are slow at these
// (https://sourceware.org/bugzilla/show_bug.cgi?id=30994).
bool measure_quickness() {
  constexpr std::size_t kPage = 4096, kPages = 4;
  const auto memory = std::make_unique<std::byte[]>((2 * kPages + 2) * kPage);
  std::byte* const to = memory.get() + (kPage - reinterpret_cast<std::uintptr_t>(memory.get()) % kPage);
  const std::byte* const from = to + (kPages + 1) * kPage - 1;
  const auto pages = [&](const auto& copy) {
    return least_time([&] {
      for (std::size_t i = 0; i < kPages; ++i) copy(to + i * kPage, from + i * kPage, kPage);
    });
  };
  const auto by_vectors =
      pages([](auto* to_page, auto* from_page, auto bytes) { copy_bytes(to_page, from_page, bytes); });
  return pages(copy_by_string) < kQuickCopies * by_vectors;
}
#else
bool measure_quickness() { return false; }
#endif

}  // namespace

bool copies_by_string(std::size_t bytes) {
  if (bytes < kLeastBytes) return false;
  return quickness.is_quick(measure_quickness);
}

void assume_string_copies_are_quick(bool is_quick) { quickness.assume(is_quick && TUTTI_HAS_STRING_COPY); }

void copy_by_string(std::byte* to, const std::byte* from, std::size_t bytes) {
  // Where the target does not begin a line, AMD's processors are up to 20 times slower.
  const std::size_t before = std::min(bytes, -reinterpret_cast<std::uintptr_t>(to) % kLineBytes);
  if (before > 0) std::memcpy(to, from, before);
  to += before, from += before, bytes -= before;
#if TUTTI_HAS_STRING_COPY
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
#else
  std::memcpy(to, from, bytes);
#endif
}

void copy_to_peer(std::byte* to, const std::byte* from, std::size_t bytes, bool past_cache) {
  copies_by_string(bytes) ? copy_by_string(to, from, bytes) : copy_bytes(to, from, bytes, past_cache);
}

}  // namespace tutti::internal
