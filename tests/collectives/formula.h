// The costs that the algorithms claim, and those of README.md, as numbers.
#pragma once

#include <string_view>

namespace tutti::internal {

struct Bound {
  bool at_most = false;
  double value = 0;
};

// What the letters of a formula stand for.
struct Letters {
  int n = 1;  // ranks
  int c = 1;  // chunks
  int h = 1;  // hosts
  int g = 1;  // ranks on each of them
};

// "at most 2 (n-1)/n M": + - * / and parentheses, products also by juxtaposition, left to right; M = 1; "log n" rounded
// up. Throws std::invalid_argument.
Bound evaluate(std::string_view formula, const Letters& letters);

}  // namespace tutti::internal
