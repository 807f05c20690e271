// Copies by the processor's own instruction for it, `rep movsb`.
//
// That instruction writes whole lines, so it need not fetch them first from the core that has read them. On an AMD EPYC
// (Zen 5), an all_gather by plain loops, with messages of 16 to 128 KiB, takes 0.74 to 0.93 times as long if it so
// copies into the ring as if vectors do. Between cores that share no cache it takes 0.37 to 0.44 times as long, and
// 0.83 to 0.86 times as long as with non-temporal stores. A symmetric all_gather, which copies into a rank's own output
// and from a peer's memory, takes 0.83 to 1.08 times as long. Shorter copies are quicker by vectors.
#pragma once

#include <cstddef>

namespace tutti::internal {

// Whether a copy of so many bytes should be a copy_by_string(). Measures once in a process how quick this processor is
// at that (about 0.02 ms). Never on other processors than x86-64, nor under sanitizers, which do not see what the
// instruction accesses.
bool copies_by_string(std::size_t bytes);
// For tests: what was measured.
void assume_string_copies_are_quick(bool quick);

// to[0, bytes) = from[0, bytes), which do not overlap. Of any length; copies_by_string() says where it is quick.
void copy_by_string(std::byte* to, const std::byte* from, std::size_t bytes);
// The same between cores: by that instruction where it is quick, else by copy_bytes(). past_cache is for
// copy_bytes() alone. Fragments::write() has exceptions.
void copy_to_peer(std::byte* to, const std::byte* from, std::size_t bytes, bool past_cache = false);

}  // namespace tutti::internal
