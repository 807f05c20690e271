#include "control/validate.h"

#include <algorithm>
#include <string>

#include "control/env.h"
#include "control/join.h"
#include "net/network.h"
#include "transport/registry.h"
#include "tutti/error.h"

namespace tutti::internal {
namespace {

std::string problem_of(const Settings& s) {
  if (s.size < 1 || s.size > 65536)
    return "the world size is " + std::to_string(s.size) + " but should be from 1 to 65536";
  if (s.rank < 0 || (s.size == 1 && s.rank != 0)) return "rank " + std::to_string(s.rank) + outside(s.size);
  if (std::min({s.timeout, s.connect_timeout, s.heartbeat_timeout, s.join_timeout}) <= std::chrono::milliseconds(0))
    return "timeouts must be longer than zero";
  if (!is_transport(s.transport)) return "transport \"" + s.transport + "\" should be " + transport_names();
  if (s.port_first > s.port_last || (s.port_first == 0) != (s.port_last == 0))
    return "the ports " + std::to_string(s.port_first) + "-" + std::to_string(s.port_last) + " are no range";
  return "";
}

}  // namespace

void validate(const Settings& settings) {
  if (const std::string problem = problem_of(settings); !problem.empty())
    throw join_error(ErrorCode::invalid_argument, settings.rank, -1, problem);
  if (!settings.interface.empty()) find_interface(settings.interface);
}

}  // namespace tutti::internal
