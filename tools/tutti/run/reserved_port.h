// A port for ranks to meet at.
#pragma once

#include "net/socket.h"

namespace tutti::internal::tools {

// A port of the loopback that no one else gets as long as this lives. Rank 0 can still listen on it: it, too, sets
// SO_REUSEADDR, and the reservation only binds and never listens.
class ReservedPort {
 public:
  ReservedPort();  // throws std::runtime_error: none is free
  int port() const { return port_; }

 private:
  internal::Socket socket_;
  int port_ = 0;
};

}  // namespace tutti::internal::tools
