// Elements to reduce, the buffers that hold them, and the trees over them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <vector>

#include "reduce/reduce.h"
#include "tutti/types.h"

namespace tutti::internal::reduce_test {

// `wild` elements are any bits, special values (NaNs, infinities, denormals, zeros of both signs, extremes) above all;
// `tame` ones are moderate numbers whose every bit counts.
enum class Kind { wild, tame };

std::vector<std::byte> elements(DType dtype, bool partial, std::size_t count, Kind kind, std::mt19937_64& random);

std::size_t bytes_of(DType dtype, bool partial);

template <class E>
std::byte* bytes_of(std::vector<E>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

// `bytes` bytes that begin `skew` bytes after an aligned address, fenced by bytes that must not change.
class Fenced {
 public:
  Fenced(std::size_t bytes, std::size_t skew);
  std::byte* data() { return storage_.data() + start_; }
  std::span<const std::byte> bytes() const { return std::span(storage_).subspan(start_, bytes_); }
  bool fence_intact() const;

 private:
  std::vector<std::byte> storage_;
  std::size_t start_;
  std::size_t bytes_;
};

// joins for n sources: of the canonical tree T, and of a tree that splits at random.
std::vector<std::uint8_t> canonical_joins(int n);
std::vector<std::uint8_t> random_joins(int n, std::mt19937_64& random);

// Runs `body` once for each instruction set that this processor has, the plain one included.
void for_each_instruction_set(const std::function<void()>& body);

}  // namespace tutti::internal::reduce_test
