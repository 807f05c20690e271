#include "control/status_protocol.h"

#include <unistd.h>

namespace tutti::internal {

std::string status_prefix() { return "tutti-status-" + std::to_string(::geteuid()) + "-"; }

std::string status_name(const std::string& job, int rank) {
  return status_prefix().append(job).append("-").append(std::to_string(rank));
}

}  // namespace tutti::internal
