// Sixteen bytes as a thread of a kernel holds them: four words in registers, whatever the elements. Everything here
// works on registers alone; element indices are constants once loops are unrolled, so nothing lands in local memory.
#pragma once

#include <bit>
#include <cstdint>

#include "reduce/element.h"

// Before a loop over what lies in registers, which must not be indexed at run time; and before one that is short and
// seldom runs more than once or twice.
#ifdef __CUDA_ARCH__
#define TUTTI_UNROLL _Pragma("unroll")
#define TUTTI_KEEP_LOOP _Pragma("unroll 1")
#else
#define TUTTI_UNROLL
#define TUTTI_KEEP_LOOP
#endif

namespace tutti::internal::cuda {

struct alignas(16) Cell {
  std::uint32_t word[4];
};

// Element i of a cell of Ts.
template <class T>
TUTTI_HOST_DEVICE constexpr T element_of(const Cell& cell, int i) {
  if constexpr (sizeof(T) == 8) {
    return std::bit_cast<T>(cell.word[2 * i] | std::uint64_t{cell.word[2 * i + 1]} << 32);
  } else {
    constexpr int kPerWord = 4 / sizeof(T), kBits = 8 * sizeof(T);
    return std::bit_cast<T>(static_cast<BitsOf<T>>(cell.word[i / kPerWord] >> (i % kPerWord * kBits)));
  }
}

// Fills a cell: elements are put in ascending order, from 0 on.
template <class T>
TUTTI_HOST_DEVICE constexpr void put_element(Cell& cell, int i, T value) {
  const auto bits = std::bit_cast<BitsOf<T>>(value);
  if constexpr (sizeof(T) == 8) {
    cell.word[2 * i] = static_cast<std::uint32_t>(bits);
    cell.word[2 * i + 1] = static_cast<std::uint32_t>(bits >> 32);
  } else {
    constexpr int kPerWord = 4 / sizeof(T), kBits = 8 * sizeof(T);
    std::uint32_t& word = cell.word[i / kPerWord];
    word = i % kPerWord == 0 ? bits : word | std::uint32_t{bits} << (i % kPerWord * kBits);
  }
}

// Bytes [past, past + kBytes) of two blocks of kBytes (8 or 16) that follow each other. Requires past < kBytes and
// past % kElement == 0; of past == 0 the second block counts for nothing.
template <int kBytes, int kElement>
TUTTI_HOST_DEVICE constexpr Cell realigned(const Cell& low, const Cell& high, std::uint32_t past) {
  constexpr int kWords = kBytes / 4;
  std::uint32_t word[2 * kWords + 1] = {};
  TUTTI_UNROLL
  for (int i = 0; i < kWords; ++i) {
    word[i] = low.word[i];
    word[kWords + i] = high.word[i];
  }
  // By powers of two, so that every index is a constant.
  TUTTI_UNROLL
  for (int i = 0; i + 2 < 2 * kWords; ++i) word[i] = (past & 8) != 0 ? word[i + 2] : word[i];
  TUTTI_UNROLL
  for (int i = 0; i + 1 < 2 * kWords; ++i) word[i] = (past & 4) != 0 ? word[i + 1] : word[i];
  Cell result{};
  TUTTI_UNROLL
  for (int i = 0; i < kWords; ++i) {
    if constexpr (kElement < 4) {
      const std::uint64_t both = word[i] | std::uint64_t{word[i + 1]} << 32;
      result.word[i] = static_cast<std::uint32_t>(both >> (past % 4 * 8));
    } else {
      result.word[i] = word[i];
    }
  }
  return result;
}

// Piece i of a cell that is stored in pieces of kBytes, in the first bytes of the result.
template <int kBytes>
TUTTI_HOST_DEVICE constexpr Cell piece_of(const Cell& cell, int i) {
  if constexpr (kBytes == 16) {
    return cell;
  } else if constexpr (kBytes == 8) {
    return {{cell.word[2 * i], cell.word[2 * i + 1]}};
  } else if constexpr (kBytes == 4) {
    return {{cell.word[i]}};
  } else if constexpr (kBytes == 2) {
    return {{element_of<std::uint16_t>(cell, i)}};
  } else {
    static_assert(kBytes == 1);
    return {{element_of<std::uint8_t>(cell, i)}};
  }
}

}  // namespace tutti::internal::cuda
