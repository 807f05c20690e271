// How figures are written.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>

namespace tutti::internal::tools {

// Enough digits for a figure of any size in ten columns.
inline std::string us_text(double us) { return fmt::format("{:.{}f}", us, us < 100 ? 3 : us < 10000 ? 1 : 0); }

// In JSON.
inline double rounded(double value) { return std::round(value * 1e4) / 1e4; }

}  // namespace tutti::internal::tools
