// A transport that the library does not have: Unix sockets join ranks of one host, by a connection for each channel. It
// shows what a new transport takes: this folder, and a line that registers it.
#pragma once

#include <memory>

#include "transport/connector.h"

namespace tutti::internal::unix_socket {

std::unique_ptr<Connector> make_connector(const ConnectorContext& context);

}  // namespace tutti::internal::unix_socket
