// The costs in README.md and in the heads of the algorithms' files, as numbers.
#pragma once

#include <string_view>

namespace tutti {

struct Bound {
  bool at_most = false;
  double value = 0;
};

// "at most 2 (n-1)/n M": + - * / and parentheses, products also by juxtaposition, left to right; n ranks; c chunks; M =
// 1; "log n" rounded up. Throws std::invalid_argument.
Bound evaluate(std::string_view formula, int n, int c);

}  // namespace tutti
