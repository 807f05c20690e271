// Integers as bytes, the least significant first on every machine. Compilers make it one store, or one load.
#pragma once

#include <concepts>
#include <cstddef>
#include <utility>

namespace tutti::internal {

template <std::unsigned_integral T>
void put_le(std::byte* at, T value) {
  [&]<std::size_t... I>(std::index_sequence<I...>) { ((at[I] = static_cast<std::byte>(value >> (8 * I))), ...); }
  (std::make_index_sequence<sizeof(T)>());
}

template <std::unsigned_integral T>
T get_le(const std::byte* at) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return static_cast<T>((... | (static_cast<T>(at[I]) << (8 * I))));
  }
  (std::make_index_sequence<sizeof(T)>());
}

}  // namespace tutti::internal
