// The sum that the loops of the limits make.
#pragma once

#include <cstddef>

namespace tutti::internal::tools {

// out[0 .. outs)[0, count) = the sum of in[0 .. n)[0, count) along the canonical tree. count: a multiple of 8.
void add_along_tree(const float* const* in, int n, float* const* out, int outs, std::size_t count);

}  // namespace tutti::internal::tools
