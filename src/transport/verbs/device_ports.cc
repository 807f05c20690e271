// The ports of real devices, and what they say of themselves.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "transport/verbs/device_list.h"
#include "transport/verbs/ports.h"
#include "transport/verbs/rc_queue_pair.h"

namespace tutti::internal::verbs {
namespace {

int node_of(const ibv_device* device) {
  int node = -1;
  std::ifstream(std::string(device->ibdev_path) + "/device/numa_node") >> node;
  return node;
}

double gbits_of(const ibv_port_attr& port) {
  constexpr std::pair<int, double> kSpeeds[] = {{1, 2.5}, {2, 5},   {4, 10},  {8, 10},
                                                {16, 14}, {32, 25}, {64, 50}, {128, 100}};
  constexpr std::pair<int, int> kWidths[] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}};
  double lane = 0;
  int lanes = 0;
  for (const auto& [code, gbits] : kSpeeds)
    if (port.active_speed == code) lane = gbits;
  for (const auto& [code, count] : kWidths)
    if (port.active_width == code) lanes = count;
  return lane * lanes;
}

int mtu_bytes(ibv_mtu mtu) { return 128 << static_cast<int>(mtu); }

// The addresses of this host's interfaces, as GIDs spell them; nothing where they cannot be asked for.
std::optional<std::set<std::string>> addresses() {
  std::set<std::string> found;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return std::nullopt;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(first, &freeifaddrs);
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    char text[INET6_ADDRSTRLEN] = "";
    if (entry->ifa_addr == nullptr) continue;
    if (entry->ifa_addr->sa_family == AF_INET) {
      inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr, text, sizeof text);
      found.insert(std::string("::ffff:") + text);
    } else if (entry->ifa_addr->sa_family == AF_INET6) {
      inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(entry->ifa_addr)->sin6_addr, text, sizeof text);
      found.insert(text);
    }
  }
  return found;
}

std::vector<Gid> gids_of(ibv_context* context, int port, int entries) {
  const std::optional<std::set<std::string>> here = addresses();
  std::vector<Gid> gids;
  for (int i = 0; i < entries; ++i) {
    ibv_gid_entry entry{};
    if (ibv_query_gid_ex(context, static_cast<std::uint32_t>(port), static_cast<std::uint32_t>(i), &entry, 0) != 0)
      continue;
    char text[INET6_ADDRSTRLEN] = "";
    inet_ntop(AF_INET6, entry.gid.raw, text, sizeof text);
    in6_addr address;
    std::memcpy(&address, entry.gid.raw, sizeof address);
    gids.push_back({i, text, entry.gid_type == IBV_GID_TYPE_ROCE_V2, IN6_IS_ADDR_LINKLOCAL(&address) != 0,
                    IN6_IS_ADDR_V4MAPPED(&address) != 0, !here || here->contains(text)});
  }
  return gids;
}

void add_ports(ibv_device* device, std::vector<Port>& ports) {
  Port port;
  port.device = ibv_get_device_name(device);
  port.node = node_of(device);
  const Context context(ibv_open_device(device));
  ibv_device_attr attributes{};
  if (context == nullptr || ibv_query_device(context.get(), &attributes) != 0) {
    port.error_text =
        std::string("it cannot be opened (") + std::strerror(errno) + "): may this user use /dev/infiniband?";
    ports.push_back(port);
    return;
  }
  for (int number = 1; number <= attributes.phys_port_cnt; ++number) {
    ibv_port_attr found{};
    port.number = number;
    port.error_text.clear();
    if (const int error = ibv_query_port(context.get(), static_cast<std::uint8_t>(number), &found); error != 0) {
      port.error_text = std::string("it cannot be asked (") + std::strerror(error) + ")";
    } else {
      port.is_ethernet = found.link_layer == IBV_LINK_LAYER_ETHERNET;
      port.is_active = found.state == IBV_PORT_ACTIVE;
      port.state = ibv_port_state_str(found.state);
      port.mtu_bytes = mtu_bytes(found.active_mtu);
      port.gbits = gbits_of(found);
      port.gids = gids_of(context.get(), number, found.gid_tbl_len);
    }
    ports.push_back(port);
  }
}

}  // namespace

std::vector<Port> find_ports() {
  std::vector<Port> ports;
  const DeviceList devices;
  for (ibv_device* device : devices.all()) add_ports(device, ports);
  return ports;
}

bool has_libibverbs() { return true; }

}  // namespace tutti::internal::verbs
