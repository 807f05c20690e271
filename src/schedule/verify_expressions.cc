#include "schedule/verify_expressions.h"

#include <fmt/format.h>

#include <algorithm>

#include "schedule/layout.h"

namespace tutti::internal {

int Expressions::intern(int below, int top) {
  const std::uint64_t key = std::uint64_t{static_cast<std::uint32_t>(below)} << 32 | static_cast<std::uint32_t>(top);
  const auto [found, fresh] = numbers_.try_emplace(key, static_cast<int>(nodes_.size()));
  if (fresh) {
    std::uint64_t leaves = top == kLeaf ? 1 : nodes_[below].leaves;
    if (top >= 0) leaves = std::min(kMany, leaves + nodes_[top].leaves);
    nodes_.push_back({below, top, leaves});
  }
  return found->second;
}

int Expressions::canonical(int lo, int hi) {
  if (hi - lo == 1) return leaf(lo);
  const int m = canonical_split(lo, hi);
  const int below = canonical(lo, m);
  return combine(below, canonical(m, hi));
}

bool Expressions::complete(int expression, int leaves) const {
  const Node& root = nodes_[expression];
  if (root.top != kFinish || root.leaves != static_cast<std::uint64_t>(leaves)) return false;
  std::vector<bool> seen(leaves, false);
  for (std::vector<int> open = {root.below}; !open.empty();) {
    const Node& node = nodes_[open.back()];
    open.pop_back();
    if (node.top == kFinish) return false;
    if (node.top == kLeaf) {
      if (seen[node.below]) return false;
      seen[node.below] = true;
    } else {
      open.push_back(node.below);
      open.push_back(node.top);
    }
  }
  return true;
}

void Expressions::append(int expression, Expression& out) const {
  const Node& node = nodes_[expression];
  if (node.top == kLeaf) {
    out.push_back(node.below);
    return;
  }
  append(node.below, out);
  append(node.top, out);
  out.push_back(kCombine);
}

Expression Expressions::postfix(int expression) const {
  Expression out;
  append(nodes_[expression].below, out);
  return out;
}

std::string Expressions::describe(int expression) const {
  const Node& node = nodes_[expression];
  if (node.top == kLeaf) return fmt::format("{}", node.below);
  if (node.leaves > 16) return fmt::format("a combination of {} leaves", node.leaves);
  if (node.top == kFinish) return fmt::format("finish({})", describe(node.below));
  return fmt::format("({} + {})", describe(node.below), describe(node.top));
}

}  // namespace tutti::internal
