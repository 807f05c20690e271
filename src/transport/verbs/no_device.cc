// In a build without libibverbs.
#include "transport/verbs/device.h"
#include "tutti/error.h"

namespace tutti::internal::verbs {

std::vector<Port> find_ports() { return {}; }

bool has_libibverbs() { return false; }

std::shared_ptr<Fabric> open_device(const PortRequest&, int) {
  throw Error(ErrorCode::unsupported, "this tutti was built without libibverbs (libibverbs-dev): use transport tcp");
}

}  // namespace tutti::internal::verbs
