#include "collectives/formula.h"

#include <bit>
#include <cctype>
#include <stdexcept>
#include <string>

namespace tutti {
namespace {

class Parser {
 public:
  Parser(std::string_view text, const Shape& shape) : text_(text), shape_(shape) {}

  bool take(std::string_view word) {
    while (!text_.empty() && text_.front() == ' ') text_.remove_prefix(1);
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }

  double sum() {
    double value = product();
    for (;;) {
      if (take("+"))
        value += product();
      else if (take("-"))
        value -= product();
      else
        return value;
    }
  }

  bool at_end() { return take("") && text_.empty(); }

 private:
  double product() {
    double value = factor();
    for (;;) {
      if (take("*"))
        value *= factor();
      else if (take("/"))
        value /= factor();
      else if (at_end() || std::string_view("+-)").find(text_.front()) != std::string_view::npos)
        return value;
      else
        value *= factor();
    }
  }

  double factor() {
    if (take("(")) {
      const double value = sum();
      if (!take(")")) throw std::invalid_argument("a parenthesis is not closed before: " + std::string(text_));
      return value;
    }
    if (take("log n")) return std::bit_width(static_cast<unsigned>(shape_.n - 1));
    if (take("n")) return shape_.n;
    if (take("c")) return shape_.c;
    if (take("h")) return shape_.h;
    if (take("g")) return shape_.g;
    if (take("M")) return 1;
    if (text_.empty() || !std::isdigit(static_cast<unsigned char>(text_.front())))
      throw std::invalid_argument("neither a number nor n, c, h, g, M or log n: " + std::string(text_));
    double value = 0;
    for (; !text_.empty() && std::isdigit(static_cast<unsigned char>(text_.front())); text_.remove_prefix(1))
      value = value * 10 + (text_.front() - '0');
    return value;
  }

  std::string_view text_;
  const Shape& shape_;
};

}  // namespace

Bound evaluate(std::string_view formula, const Shape& shape) {
  Parser parser(formula, shape);
  Bound bound;
  bound.at_most = parser.take("at most");
  bound.value = parser.sum();
  if (!parser.at_end()) throw std::invalid_argument("not a formula: " + std::string(formula));
  return bound;
}

}  // namespace tutti
