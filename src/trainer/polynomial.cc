#include "trainer/polynomial.h"

#include <algorithm>

#include "tutti/error.h"

namespace tutti::trainer {

std::string_view to_string(Basis basis) { return basis == Basis::chebyshev ? "chebyshev" : "monomial"; }

std::optional<Basis> parse_basis(std::string_view name) {
  for (Basis basis : {Basis::chebyshev, Basis::monomial}) {
    if (name == to_string(basis)) return basis;
  }
  return std::nullopt;
}

Scaling Scaling::of(std::span<const double> x) {
  const auto [least, greatest] = std::minmax_element(x.begin(), x.end());
  if (*least == *greatest) return {*least, 1};
  const Scaling scaling{*least / 2 + *greatest / 2,
                        *greatest / 2 - *least / 2};  // halved first: their sum may overflow
  if (!(scaling.half_width > 0)) {
    throw Error(ErrorCode::invalid_argument, "the x differ by less than a double can halve: measure x in another unit");
  }
  return scaling;
}

Tensor Polynomial::features(std::span<const double> x, Device& device) const {
  Tensor made = Tensor::unset({x.size(), weights()}, device);
  const Array points(device, x);
  device.run({.step = basis == Basis::chebyshev ? Step::chebyshev : Step::monomial,
              .count = x.size(),
              .out = made.node().values.data(),
              .a = points.data(),
              .inner = weights(),
              .scalar = scaling.center,
              .scalar2 = scaling.half_width});
  return made;
}

}  // namespace tutti::trainer
