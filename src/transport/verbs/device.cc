#include "transport/verbs/device.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "transport/verbs/device_events.h"
#include "transport/verbs/device_list.h"
#include "transport/verbs/rc_queue_pair.h"
#include "tutti/error.h"

namespace tutti::internal::verbs {
namespace {

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
  std::string error_text() override { return events_.error_text(); }

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

std::shared_ptr<Fabric> open_device(const PortRequest& request, int node) {
  const std::vector<Port> ports = find_ports();
  const Choice choice = choose(ports, request, node);
  if (!choice.chosen) throw Error(ErrorCode::unsupported, why_none(ports, choice, request));
  const Port& port = ports[*choice.chosen];
  auto opened = std::make_shared<Opened>();
  const DeviceList devices;
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

}  // namespace tutti::internal::verbs
