#include "transport/registry.h"

#include <algorithm>

#include "transport/connector.h"

namespace tutti::internal {

#define TUTTI_TRANSPORT(kind)                                           \
  namespace kind {                                                      \
  std::unique_ptr<Connector> make_connector(const ConnectorContext& c); \
  }
#include "transport/kinds.inc"
#undef TUTTI_TRANSPORT

namespace {

std::vector<TransportKind>& kinds() {
#define TUTTI_TRANSPORT(kind) {#kind, kind::make_connector},
  static std::vector<TransportKind> all{
#include "transport/kinds.inc"
  };
#undef TUTTI_TRANSPORT
  return all;
}

}  // namespace

const std::vector<TransportKind>& transport_kinds() { return kinds(); }

bool is_transport(std::string_view name) {
  return name == "auto" || std::ranges::find(kinds(), name, &TransportKind::name) != kinds().end();
}

std::string transport_names() {
  std::string names = "auto";
  for (const TransportKind& kind : kinds()) names.append(&kind == &kinds().back() ? " or " : ", ").append(kind.name);
  return names;
}

void register_transport(const TransportKind& kind) { kinds().push_back(kind); }

}  // namespace tutti::internal
