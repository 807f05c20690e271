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
  const Scaling scaling{*least / 2 + *greatest / 2,
                        *greatest / 2 - *least / 2};  // halved first: their sum may overflow
  if (!(scaling.half_width > 0)) {
    throw Error(ErrorCode::invalid_argument,
                "all x are equal (" + std::to_string(*least) + "): a polynomial needs points that differ in x");
  }
  return scaling;
}

Tensor Polynomial::features(std::span<const double> x) const {
  std::vector<double> values(x.size() * weights());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double t = scaling.apply(x[i]);
    double* row = values.data() + i * weights();
    row[0] = 1;
    if (degree >= 1) row[1] = t;
    for (int k = 2; k <= degree; ++k) {
      row[k] = basis == Basis::chebyshev ? 2 * t * row[k - 1] - row[k - 2] : t * row[k - 1];
    }
  }
  return Tensor::constant({x.size(), weights()}, std::move(values));
}

}  // namespace tutti::trainer
