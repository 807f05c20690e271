// Results as symbols: which leaves were combined, in which order. Equal expressions have equal numbers.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "schedule/proof.h"

namespace tutti::internal {

class Expressions {
 public:
  int leaf(int number) { return intern(number, kLeaf); }
  int combine(int below, int top) { return intern(below, top); }
  int finish(int expression) { return intern(expression, kFinish); }

  int canonical(int lo, int hi);  // T[lo, hi), unfinished

  // Does a finished expression hold each of the leaves [0, leaves) exactly once, and is it finished once, at its root?
  bool complete(int expression, int leaves) const;

  // The combination below a finished root. Requires complete().
  Expression postfix(int expression) const;

  // For a sentence: "finish(0 + (1 + 2))"; long ones are cut.
  std::string describe(int expression) const;

 private:
  static constexpr int kLeaf = -1;
  static constexpr int kFinish = -2;
  struct Node {
    int below;
    int top;               // an expression, kLeaf or kFinish
    std::uint64_t leaves;  // counted as often as they occur, up to kMany
  };
  static constexpr std::uint64_t kMany = std::uint64_t{1} << 32;
  int intern(int below, int top);
  void append(int expression, Expression& out) const;

  std::vector<Node> nodes_;
  std::unordered_map<std::uint64_t, int> numbers_;
};

}  // namespace tutti::internal
