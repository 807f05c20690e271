#include "reduce/tree.h"

#include <fmt/format.h>

#include <bit>

#include "tutti/error.h"

namespace tutti::internal {
namespace {

// In a canonical tree over n sources, source i < n - 1 is followed by as many joins as i + 1 has trailing zeros, the
// last one by what is left of n - 1.
constexpr int joins_within(std::size_t n, std::size_t i) {
  if (i < n - 1) return std::countr_zero(i + 1);
  int left = static_cast<int>(n) - 1;
  for (std::size_t before = 0; before < i; ++before) left -= joins_within(n, before);
  return left;
}

bool starts_with_tree(std::span<const ReduceSource> sources, std::size_t n, bool two_forms) {
  if (sources.size() < n || sources[n - 1].joins < joins_within(n, n - 1)) return false;
  for (std::size_t i = 0; i < n; ++i) {
    if (two_forms && sources[i].partial != sources[0].partial) return false;
    if (i < n - 1 && sources[i].joins != joins_within(n, i)) return false;
  }
  return true;
}

std::size_t largest_tree(std::span<const ReduceSource> sources, bool two_forms, std::span<const std::uint8_t> sizes) {
  for (const std::size_t n : sizes) {
    if (starts_with_tree(sources, n, two_forms)) return n;
  }
  return 1;
}

[[noreturn]] void refuse(std::span<const ReduceSource> sources, std::size_t at, const char* why) {
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("reduce: the tree over {} sources {} at source {}; a schedule that passes verify() has no such tree",
                  sources.size(), why, at));
}

void check(std::span<const ReduceSource> sources) {
  std::size_t depth = 0;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].joins > depth) refuse(sources, i, "joins more than there is");
    depth = depth + 1 - sources[i].joins;
    if (depth > kMaxDepth) refuse(sources, i, "keeps more than 32 partial results");
  }
  if (depth != 1) refuse(sources, sources.size(), "does not end in one result");
}

}  // namespace

void Groups::cut(std::span<const ReduceSource> sources, bool two_forms, std::span<const std::uint8_t> sizes) {
  check(sources);
  for (std::size_t i = 0; i < sources.size();) {
    const std::size_t size = largest_tree(sources.subspan(i), two_forms, sizes);
    const std::size_t last = i + size - 1;
    const int joins = sources[last].joins - joins_within(size, size - 1);
    add({static_cast<std::uint32_t>(i), static_cast<std::uint8_t>(size), static_cast<std::uint8_t>(joins),
         sources[i].partial});
    i = last + 1;
  }
}

void Groups::add(const SourceGroup& group) {
  if (size_ < kFew) {
    few_[size_++] = group;
    return;
  }
  if (size_ == kFew) many_.assign(few_, few_ + kFew);
  many_.push_back(group);
  ++size_;
}

}  // namespace tutti::internal
