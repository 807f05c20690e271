// The kind of socket through which two ranks meet.
#pragma once

#include <cstdint>

namespace tutti::internal {

enum class Path : std::uint8_t { local, tcp };  // a Unix socket on one host, or TCP

}  // namespace tutti::internal
