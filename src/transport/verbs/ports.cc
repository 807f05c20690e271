#include "transport/verbs/ports.h"

#include <algorithm>
#include <charconv>

#include "tutti/error.h"

namespace tutti::internal::verbs {
namespace {

// RoCE v2 over IPv4 can be routed and is what switches are set up for; a link-local address reaches its own link only,
// and none if no interface has it.
int worth(const Gid& gid) {
  if (!gid.is_roce_v2 || (gid.is_link_local && !gid.is_an_address)) return 0;
  return (gid.is_an_address ? 3 : 0) + (gid.is_link_local ? 0 : gid.is_ipv4 ? 2 : 1);
}

const Gid* gid_of(const Port& port, const PortRequest& request, std::string& why_not) {
  const Gid* best = nullptr;
  for (const Gid& gid : port.gids) {
    if (request.gid >= 0 ? gid.index != request.gid : port.is_ethernet && worth(gid) == 0) continue;
    if (best == nullptr || worth(gid) > worth(*best)) best = &gid;
  }
  if (best == nullptr && request.gid >= 0)
    why_not = "has no GID " + std::to_string(request.gid);
  else if (best == nullptr)
    why_not =
        port.gids.empty()
            ? "has no GID: give its network interface an address"
            : "has no RoCE v2 GID that is an address of this host: give its network interface an IPv4 address, or "
              "say TUTTI_VERBS_GID";
  return best;
}

}  // namespace

PortRequest PortRequest::parse(const std::string& device_and_port, int gid) {
  PortRequest request;
  request.gid = gid;
  const std::size_t colon = device_and_port.find(':');
  request.device = device_and_port.substr(0, colon);
  if (colon == std::string::npos) return request;
  const char* const begin = device_and_port.data() + colon + 1;
  const char* const end = device_and_port.data() + device_and_port.size();
  const auto [stop, error] = std::from_chars(begin, end, request.port);
  if (error != std::errc() || stop != end || request.port < 1)
    throw Error(ErrorCode::invalid_argument,
                "TUTTI_VERBS_DEVICE is a device, or device:port (\"mlx5_0:1\"), not \"" + device_and_port + "\"");
  return request;
}

Choice choose(const std::vector<Port>& ports, const PortRequest& request, int node) {
  Choice choice;
  choice.words.resize(ports.size());
  std::vector<const Gid*> gids(ports.size());
  const auto is_near = [&](std::size_t i) { return node >= 0 && ports[i].node == node; };
  const auto is_better = [&](std::size_t a, std::size_t b) {
    return is_near(a) != is_near(b) ? is_near(a) : ports[a].gbits > ports[b].gbits;
  };
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const Port& port = ports[i];
    std::string& why_not = choice.words[i];
    if (!request.device.empty() && port.device != request.device) {
      why_not = "TUTTI_VERBS_DEVICE asks for " + request.device;
    } else if (request.port > 0 && port.number != request.port) {
      why_not = "TUTTI_VERBS_DEVICE asks for port " + std::to_string(request.port);
    } else if (!port.error_text.empty()) {
      why_not = port.error_text;
    } else if (!port.is_active) {
      why_not = "its link is not up (" + port.state + ")";
    } else if ((gids[i] = gid_of(port, request, why_not)) != nullptr) {
      if (!choice.chosen || is_better(i, *choice.chosen)) choice.chosen = i;
    }
  }
  for (std::size_t i = 0; i < ports.size(); ++i)
    if (gids[i] != nullptr && i != choice.chosen)
      choice.words[i] =
          is_near(*choice.chosen) && !is_near(i) ? "another is nearer" : "another is as near, and as fast or faster";
  if (choice.chosen) {
    const Gid& gid = *gids[*choice.chosen];
    choice.gid = gid.index;
    choice.words[*choice.chosen] = "used, with GID " + std::to_string(gid.index) + " (" + gid.text + ")";
  }
  return choice;
}

std::string why_none(const std::vector<Port>& ports, const Choice& choice, const PortRequest& request) {
  if (ports.empty())
    return "this host has no RDMA device" + (request.device.empty() ? "" : ", so no " + request.device) +
           ": use transport tcp, or try `rdma link` and `tutti doctor`";
  std::string words = "this host has no RDMA port to use:";
  for (std::size_t i = 0; i < ports.size(); ++i)
    words +=
        (i == 0 ? " " : "; ") + ports[i].device + " port " + std::to_string(ports[i].number) + ": " + choice.words[i];
  return words;
}

}  // namespace tutti::internal::verbs
