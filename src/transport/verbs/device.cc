#include "transport/verbs/device.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "transport/verbs/device_events.h"
#include "transport/verbs/rc_queue_pair.h"
#include "tutti/error.h"

namespace tutti::verbs {
namespace {

class Devices {
 public:
  Devices() : list_(ibv_get_device_list(&count_)) {}
  ~Devices() {
    if (list_ != nullptr) ibv_free_device_list(list_);
  }
  Devices(const Devices&) = delete;
  Devices& operator=(const Devices&) = delete;
  std::span<ibv_device*> all() const& { return {list_, static_cast<std::size_t>(list_ == nullptr ? 0 : count_)}; }

 private:
  int count_ = 0;
  ibv_device** list_;
};

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
    port.trouble =
        std::string("it cannot be opened (") + std::strerror(errno) + "): may this user use /dev/infiniband?";
    ports.push_back(port);
    return;
  }
  for (int number = 1; number <= attributes.phys_port_cnt; ++number) {
    ibv_port_attr found{};
    port.number = number;
    port.trouble.clear();
    if (const int error = ibv_query_port(context.get(), static_cast<std::uint8_t>(number), &found); error != 0) {
      port.trouble = std::string("it cannot be asked (") + std::strerror(error) + ")";
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

class Memory final : public Registration {
 public:
  Memory(std::shared_ptr<const Opened> opened, ibv_mr* region) : opened_(std::move(opened)), region_(region) {}
  ~Memory() override { ibv_dereg_mr(region_); }
  std::uint32_t local_key() const override { return region_->lkey; }
  std::uint32_t remote_key() const override { return region_->rkey; }

 private:
  const std::shared_ptr<const Opened> opened_;  // while its memory is registered
  ibv_mr* const region_;
};

class Device final : public Fabric {
 public:
  Device(std::shared_ptr<const Opened> opened, const std::string& name)
      : opened_(std::move(opened)), name_(name), events_(opened_->context.get(), name, opened_->port) {}

  std::unique_ptr<QueuePair> queue_pair(const Sizes& sizes) override {
    return std::make_unique<RcQueuePair>(opened_, sizes);
  }
  std::unique_ptr<Registration> register_memory(std::byte* data, std::size_t bytes) override;
  std::size_t most_in_a_write() const override {
    return std::min<std::size_t>(opened_->attributes.max_msg_sz, 4 << 20);
  }
  int bell() const override { return opened_->bell->fd; }
  void hush() override;
  std::string trouble() override { return events_.trouble(); }

 private:
  const std::shared_ptr<const Opened> opened_;
  const std::string name_;
  DeviceEvents events_;
};

std::unique_ptr<Registration> Device::register_memory(std::byte* data, std::size_t bytes) {
  ibv_mr* const region =
      ibv_reg_mr(opened_->domain.get(), data, bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  if (region != nullptr) return std::make_unique<Memory>(opened_, region);
  const int error = errno;
  std::string words = name_ + " cannot register " + std::to_string(bytes) + " bytes (" + std::strerror(error) + ")";
  rlimit limit{};
  if (error == ENOMEM && getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    words +=
        ": this process may lock " + std::to_string(limit.rlim_cur / 1024) +
        " KiB of memory; raise it (`ulimit -l unlimited`, memlock in /etc/security/limits.conf, LimitMEMLOCK= of a "
        "systemd unit, --ulimit memlock=-1 of docker)";
  throw Error(ErrorCode::system, words);
}

void Device::hush() {
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  while (ibv_get_cq_event(opened_->bell.get(), &queue, &context) == 0) {  // which does not block: open_device()
    ibv_ack_cq_events(queue, 1);
    static_cast<RcQueuePair*>(context)->rang();
  }
}

}  // namespace

std::vector<Port> find_ports() {
  std::vector<Port> ports;
  const Devices devices;
  for (ibv_device* device : devices.all()) add_ports(device, ports);
  return ports;
}

bool has_libibverbs() { return true; }

std::shared_ptr<Fabric> open_device(const Wish& wish, int node) {
  const std::vector<Port> ports = find_ports();
  const Choice choice = choose(ports, wish, node);
  if (!choice.chosen) throw Error(ErrorCode::unsupported, why_none(ports, choice, wish));
  const Port& port = ports[*choice.chosen];
  auto opened = std::make_shared<Opened>();
  const Devices devices;
  for (ibv_device* device : devices.all())
    if (port.device == ibv_get_device_name(device)) opened->context.reset(ibv_open_device(device));
  if (opened->context == nullptr) refuse("cannot open " + port.device, errno);
  ibv_context* const context = opened->context.get();
  opened->port = static_cast<std::uint8_t>(port.number);
  opened->gid_index = choice.gid;
  if (ibv_query_port(context, opened->port, &opened->attributes) != 0 ||
      ibv_query_gid(context, opened->port, choice.gid, &opened->gid) != 0)
    refuse("cannot ask " + port.device, errno);
  opened->domain.reset(ibv_alloc_pd(context));
  if (opened->domain == nullptr) refuse("cannot make a protection domain on " + port.device, errno);
  opened->bell.reset(ibv_create_comp_channel(context));
  if (opened->bell == nullptr) refuse("cannot make a completion channel on " + port.device, errno);
  fcntl(opened->bell->fd, F_SETFL, fcntl(opened->bell->fd, F_GETFL) | O_NONBLOCK);
  return std::make_shared<Device>(std::move(opened), port.device);
}

}  // namespace tutti::verbs
