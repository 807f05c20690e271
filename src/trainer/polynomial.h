// The model: p(x) = sum over k of weights[k] * B_k(t), t = (x - center) / half_width in [-1, 1], B_k being the
// Chebyshev polynomial T_k or the power t^k. The scaling is what makes a high degree trainable at all.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "trainer/tensor.h"

namespace tutti::trainer {

enum class Basis { chebyshev, monomial };

std::string_view to_string(Basis basis);
std::optional<Basis> parse_basis(std::string_view name);

struct Scaling {
  double center = 0;
  double half_width = 1;

  // Takes [min x, max x] to [-1, 1]; x, where all are equal, to 0. x is not empty. Throws Error{invalid_argument} where
  // the x differ by so little that half of it is no double.
  static Scaling of(std::span<const double> x);
  double apply(double x) const { return (x - center) / half_width; }
};

struct Polynomial {
  Basis basis = Basis::chebyshev;
  int degree = 1;
  Scaling scaling;

  std::size_t weights() const { return static_cast<std::size_t>(degree) + 1; }

  // {x.size(), weights()}: row i holds B_0(t_i) … B_degree(t_i), so that p at all x is matmul(features(x), weights).
  // x is the host's; the rows are computed on `device`.
  Tensor features(std::span<const double> x, Device& device = cpu()) const;

  // c[0, weights()) such that p(x) = sum of c[k] * x^k in the unscaled x. Computed in exact rational arithmetic from
  // the weights and the scaling, each rounded once at the end: the change of basis loses no digit, however ill
  // conditioned. Throws Error{unsupported} if a coefficient is too large or too small for a double.
  std::vector<double> monomial_coefficients(std::span<const double> weights) const;
};

}  // namespace tutti::trainer
