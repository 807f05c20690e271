#include "collectives/formula.h"

#include <bit>
#include <cctype>
#include <stdexcept>
#include <string>

namespace tutti::internal {
namespace {

class Parser {
 public:
  Parser(std::string_view text, const Letters& letters) : text_(text), letters_(letters) {}

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
    if (take("log n")) return std::bit_width(static_cast<unsigned>(letters_.n - 1));
    if (take("n")) return letters_.n;
    if (take("c")) return letters_.c;
    if (take("h")) return letters_.h;
    if (take("g")) return letters_.g;
    if (take("M")) return 1;
    if (text_.empty() || !std::isdigit(static_cast<unsigned char>(text_.front())))
      throw std::invalid_argument("neither a number nor n, c, h, g, M or log n: " + std::string(text_));
    double value = 0;
    for (; !text_.empty() && std::isdigit(static_cast<unsigned char>(text_.front())); text_.remove_prefix(1))
      value = value * 10 + (text_.front() - '0');
    return value;
  }

  std::string_view text_;
  const Letters& letters_;
};

}  // namespace

Bound evaluate(std::string_view formula, const Letters& letters) {
  Parser parser(formula, letters);
  Bound bound;
  bound.at_most = parser.take("at most");
  bound.value = parser.sum();
  if (!parser.at_end()) throw std::invalid_argument("not a formula: " + std::string(formula));
  return bound;
}

}  // namespace tutti::internal
