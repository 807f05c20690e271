// The kinds of transports that this library has.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::internal {

class Connector;
struct ConnectorContext;

// Throws Error{invalid_argument} where what is set for this kind of transport is malformed, be it used or not. (A
// job of threads over inproc makes no other kind.)
using MakeConnector = std::unique_ptr<Connector> (*)(const ConnectorContext& context);

struct TransportKind {
  std::string_view name;  // as TUTTI_TRANSPORT has it
  MakeConnector make;
};

// Of several kinds that reach a peer the first is used, unless TUTTI_TRANSPORT names one.
const std::vector<TransportKind>& transport_kinds();

// Whether Settings::transport may be this: "auto", or the name of a kind.
bool is_transport(std::string_view name);
std::string transport_names();  // "auto, shm, verbs or tcp"

// Adds a kind behind the others. Before the first rank of this process joins a job; not thread-safe.
void register_transport(const TransportKind& kind);

}  // namespace tutti::internal
