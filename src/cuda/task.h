// What a kernel is given, by value in its parameters: nothing is allocated or copied before a launch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reduce/element.h"

namespace tutti::internal::cuda {

template <std::size_t kWords>
TUTTI_HOST_DEVICE constexpr bool is_set(const std::uint32_t (&bits)[kWords], int i) {
  return (bits[i / 32] >> (i % 32) & 1) != 0;
}
template <std::size_t kWords>
constexpr void set(std::uint32_t (&bits)[kWords], int i) {
  bits[i / 32] |= 1u << (i % 32);
}

// The sources that one batch holds in registers, as a canonical tree of their own.
inline constexpr int kBatch = 8;

// `size` sources that form T[0, size), their value then combined `joins` times with what waits.
struct Group {
  std::uint8_t size;
  std::uint8_t joins;
};

// Elements [0, count) are work for `items` threads: item i < cells is the cell whose first element is
// head + i * (elements of a cell); the others, the loose ones, are one element each, before and after the cells.
template <int kSources_, int kTargets_>
struct Task {
  static constexpr int kSources = kSources_, kTargets = kTargets_;
  // Trees that are more than one group need partial results to wait, and a list of the groups.
  static constexpr bool kOneGroup = kSources <= kBatch;

  const std::byte* source[kSources];
  std::byte* target[kTargets];
  std::size_t head;
  std::size_t cells;
  std::size_t items;
  std::uint32_t leaves;  // what avg divides by
  std::uint16_t sources;
  std::uint16_t targets;
  std::uint16_t groups;
  bool congruent;  // the cells of all sources and targets lie at multiples of their size
  std::uint32_t partial_sources[(kSources + 31) / 32];  // one bit each
  std::uint32_t partial_targets[(kTargets + 31) / 32];
  Group group[kOneGroup ? 1 : kSources];
};

// The usual call, in as few bytes as a launch can have; and all that one launch can do.
using FewTask = Task<kBatch, 8>;
using ManyTask = Task<1024, 64>;
static_assert(sizeof(ManyTask) <= 32764, "the parameters of a kernel, from compute capability 7.0 and CUDA 12.1 on");

}  // namespace tutti::internal::cuda
