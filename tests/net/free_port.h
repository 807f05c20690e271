// Where a job of a test meets.
#pragma once

#include <cstdint>

#include "net/socket.h"

namespace tutti::internal {

// A port of the loopback that nobody listened at a moment ago.
inline std::uint16_t free_port() {
  return internal::own_end(internal::listen_in(internal::loopback(), 0, 0).fd()).port();
}

}  // namespace tutti::internal
