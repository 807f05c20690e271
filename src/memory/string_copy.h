// Copies by the processor's own instruction for it, `rep movsb`, into memory whose lines other cores have.
//
// That instruction writes whole lines, so it need not fetch them first from the core that has read them. On an AMD EPYC
// (Zen 5) a copy of 16 KiB to 1 MiB into a ring takes 0.7 to 0.85 times as long as by vectors if the cores share a
// cache. If they do not, a fourth; and 0.85 times as long as by non-temporal stores. Shorter copies, and those within
// the cache of one core, are as quick by vectors or quicker.
#pragma once

#include <cstddef>

namespace tutti::internal {

// Whether a copy of so many bytes into memory that another core has read should be copy_by_string(). Measures once in a
// process how quick this processor is at it (about 0.02 ms). Never on other processors than x86-64, nor under
// sanitizers, which do not see what the instruction accesses.
bool copies_by_string(std::size_t bytes);
// For tests: what was measured.
void assume_string_copies_are_quick(bool quick);

// to[0, bytes) = from[0, bytes), which do not overlap. Only where copies_by_string().
void copy_by_string(std::byte* to, const std::byte* from, std::size_t bytes);

// The same into memory that another core has read, in the way that is quickest. is_far: the two share no cache.
void copy_to_peer(std::byte* to, const std::byte* from, std::size_t bytes, bool is_far = false);

}  // namespace tutti::internal
