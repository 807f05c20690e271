// One element at a time, by element.h alone: the reference, and what the vector kernels use for the last few elements.
#pragma once

#include <cstddef>
#include <cstring>

#include "reduce/element.h"
#include "reduce/operands.h"
#include "reduce/tree.h"

namespace tutti::internal {

// What a kernel is given: the call, checked. `leaves` divides the result; 0 means that nothing does.
struct Task {
  std::span<const ReduceSource> sources;
  std::span<const ReduceTarget> targets;
  std::span<const SourceGroup> groups;
  std::size_t count = 0;
  std::uint32_t leaves = 0;
  bool stream = false;
};

template <class T>
AccumulationOf<T> load_element(const ReduceSource& source, std::size_t i) {
  if (NarrowFloat<T> && source.partial) {
    AccumulationOf<T> value;
    std::memcpy(&value, source.data + i * sizeof value, sizeof value);
    return value;
  }
  T value;
  std::memcpy(&value, source.data + i * sizeof value, sizeof value);
  return widen(value);
}

template <class T>
void store_element(AccumulationOf<T> value, const ReduceTarget& target, std::size_t i) {
  if (NarrowFloat<T> && target.partial) {
    value = canonical(value);
    std::memcpy(target.data + i * sizeof value, &value, sizeof value);
  } else {
    const T narrowed = narrow<T>(value);
    std::memcpy(target.data + i * sizeof narrowed, &narrowed, sizeof narrowed);
  }
}

template <class T, Op op>
AccumulationOf<T> evaluate_element(std::span<const ReduceSource> sources, std::size_t i) {
  AccumulationOf<T> waiting[kMaxDepth];
  std::size_t size = 0;
  for (const ReduceSource& source : sources) {
    AccumulationOf<T> value = load_element<T>(source, i);
    for (int joins = source.joins; joins > 0; --joins) value = combine<op>(waiting[--size], value);
    waiting[size++] = value;
  }
  return waiting[0];
}

// Elements [begin, end).
template <class T, Op op>
void reduce_elements(const Task& task, std::size_t begin, std::size_t end) {
  // Copies: the compiler must assume that a store to a target changes the task.
  const auto sources = task.sources;
  const auto targets = task.targets;
  const std::uint32_t leaves = task.leaves;
  for (std::size_t i = begin; i < end; ++i) {
    // The smallest all-reduce of two ranks is this line and no more.
    AccumulationOf<T> value = sources.size() == 2
                                  ? combine<op>(load_element<T>(sources[0], i), load_element<T>(sources[1], i))
                                  : evaluate_element<T, op>(sources, i);
    if (leaves != 0) value = average(value, leaves);
    for (const ReduceTarget& target : targets) store_element<T>(value, target, i);
  }
}

}  // namespace tutti::internal
