#include "transport/verbs/device.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <random>
#include <utility>

#include "tutti/error.h"

namespace tutti::verbs {
namespace {

// A write is given up, and the peer with it, after kRetries + 1 tries of this many times 4.096 us * 2^kTimeout = 67 ms
// (devices may take up to four times as long): half a second, or two. Seven would mean for ever on some devices.
constexpr int kTimeout = 14;
constexpr int kRetries = 6;
constexpr std::uint32_t kMostInline = 256;        // bytes, asked for
constexpr std::uint64_t kReportEvery = 16;        // writes
constexpr std::uint32_t kReplenishedAtOnce = 32;  // requests for arrivals

[[noreturn]] void refuse(const std::string& what, int error) {
  throw Error(ErrorCode::system, what + ": " + std::strerror(error));
}

template <auto kDestroy>
struct With {
  template <class T>
  void operator()(T* at) const {
    kDestroy(at);
  }
};
using Context = std::unique_ptr<ibv_context, With<ibv_close_device>>;
using Domain = std::unique_ptr<ibv_pd, With<ibv_dealloc_pd>>;
using Bell = std::unique_ptr<ibv_comp_channel, With<ibv_destroy_comp_channel>>;
using Queue = std::unique_ptr<ibv_cq, With<ibv_destroy_cq>>;
using Pair = std::unique_ptr<ibv_qp, With<ibv_destroy_qp>>;

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

std::vector<Gid> gids_of(ibv_context* context, int port, int entries) {
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
                    IN6_IS_ADDR_V4MAPPED(&address) != 0});
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

// What a completion's error means to a person.
std::string words_for(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_RETRY_EXC_ERR: return "the peer, or the link to it, no longer answers (retries exhausted)";
    case IBV_WC_RNR_RETRY_EXC_ERR: return "the peer had no request ready for a write, which its credit should prevent";
    case IBV_WC_REM_ACCESS_ERR: return "the peer refused a write: memory that it had offered is no longer registered";
    case IBV_WC_LOC_PROT_ERR: return "this rank sent from memory that is no longer registered";
    case IBV_WC_WR_FLUSH_ERR: return "the queue pair has been closed";
    case IBV_WC_LOC_QP_OP_ERR: return "this rank's device could not send: is its link up?";
    case IBV_WC_REM_OP_ERR: return "the peer's device could not complete a write";
    default: return std::string("the device reports: ") + ibv_wc_status_str(status);
  }
}

struct Opened {
  Context context;
  Domain domain;
  Bell bell;
  std::uint8_t port;
  int gid_index;
  ibv_gid gid;
  ibv_port_attr attributes;
};

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

// 40 bytes: queue pair number, first packet number, LID, MTU, GID.
struct Told {
  std::uint32_t number, first_packet;
  std::uint16_t lid, mtu;
  std::uint8_t gid[16];
};
static_assert(sizeof(Told) <= QueuePair::kAddressBytes);

class RcQueuePair final : public QueuePair {
 public:
  RcQueuePair(std::shared_ptr<const Opened> opened, const Fabric::Sizes& sizes);
  ~RcQueuePair() override { close(); }

  Address address() const override;
  void connect(const Address& peer) override;
  bool write(const Write& write) override;
  std::uint64_t written() const override { return written_; }
  std::size_t most_inline() const override { return most_inline_; }
  std::size_t poll(std::span<Event> events) override;
  const std::string& why() const override { return why_; }
  void arm() override {
    if (queue_ != nullptr) ibv_req_notify_cq(queue_.get(), 0);
  }
  void close() override {
    pair_.reset();
    queue_.reset();
  }

 private:
  void request(std::uint32_t count);
  void change(ibv_qp_attr& attributes, int mask, const char* what);

  const std::shared_ptr<const Opened> opened_;
  const std::uint32_t writes_;
  Queue queue_;
  Pair pair_;
  std::size_t most_inline_ = 0;
  std::uint32_t first_packet_;
  std::uint64_t written_ = 0, done_ = 0;
  std::uint32_t used_up_ = 0;  // requests for arrivals, since they were last replenished
  std::string why_;
  bool has_told_ = false;  // of that
};

RcQueuePair::RcQueuePair(std::shared_ptr<const Opened> opened, const Fabric::Sizes& sizes)
    : opened_(std::move(opened)), writes_(sizes.writes), first_packet_(std::random_device{}() & 0xffffff) {
  const std::uint32_t requests = sizes.arrivals + kReplenishedAtOnce;
  queue_.reset(
      ibv_create_cq(opened_->context.get(), static_cast<int>(writes_ + requests), nullptr, opened_->bell.get(), 0));
  if (queue_ == nullptr) refuse("cannot make a completion queue", errno);
  for (std::uint32_t in_line = kMostInline;; in_line /= 2) {  // devices differ, and say no without saying how much
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = queue_.get();
    wanted.qp_type = IBV_QPT_RC;
    wanted.cap = {.max_send_wr = writes_,
                  .max_recv_wr = requests,
                  .max_send_sge = 2,
                  .max_recv_sge = 1,
                  .max_inline_data = in_line};
    pair_.reset(ibv_create_qp(opened_->domain.get(), &wanted));
    most_inline_ = std::min(wanted.cap.max_inline_data, kMostInline);
    if (pair_ != nullptr) break;
    if (in_line == 0) refuse("cannot make a queue pair", errno);
  }
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = opened_->port;
  attributes.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  change(attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, "set up");
  request(requests);
  if (!why_.empty()) throw Error(ErrorCode::system, why_);
}

void RcQueuePair::change(ibv_qp_attr& attributes, int mask, const char* what) {
  if (const int error = ibv_modify_qp(pair_.get(), &attributes, mask); error != 0)
    refuse(std::string("cannot ") + what + " a queue pair", error);
}

// Requests without memory: writes bring their own place, and use up one each that tells of itself.
void RcQueuePair::request(std::uint32_t count) {
  ibv_recv_wr requests[kReplenishedAtOnce] = {};
  while (count > 0) {
    const std::uint32_t now = std::min(count, kReplenishedAtOnce);
    for (std::uint32_t i = 0; i < now; ++i) requests[i].next = i + 1 < now ? &requests[i + 1] : nullptr;
    ibv_recv_wr* bad = nullptr;
    if (const int error = ibv_post_recv(pair_.get(), requests, &bad); error != 0 && why_.empty())
      why_ = std::string("cannot post requests: ") + std::strerror(error);
    count -= now;
  }
}

QueuePair::Address RcQueuePair::address() const {
  Told told{};
  told.number = htonl(pair_->qp_num);
  told.first_packet = htonl(first_packet_);
  told.lid = htons(opened_->attributes.lid);
  told.mtu = htons(static_cast<std::uint16_t>(opened_->attributes.active_mtu));
  std::memcpy(told.gid, opened_->gid.raw, sizeof told.gid);
  Address address{};
  std::memcpy(address.data(), &told, sizeof told);
  return address;
}

void RcQueuePair::connect(const Address& peer) {
  Told told;
  std::memcpy(&told, peer.data(), sizeof told);
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = std::min(opened_->attributes.active_mtu, static_cast<ibv_mtu>(ntohs(told.mtu)));
  attributes.dest_qp_num = ntohl(told.number);
  attributes.rq_psn = ntohl(told.first_packet);
  attributes.min_rnr_timer = 12;
  attributes.ah_attr.port_num = opened_->port;
  attributes.ah_attr.dlid = ntohs(told.lid);
  attributes.ah_attr.is_global = 1;
  attributes.ah_attr.grh.hop_limit = 64;
  attributes.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(opened_->gid_index);
  std::memcpy(attributes.ah_attr.grh.dgid.raw, told.gid, sizeof told.gid);
  change(attributes,
         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
             IBV_QP_MIN_RNR_TIMER,
         "join");
  attributes = {};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = kTimeout;
  attributes.retry_cnt = kRetries;
  attributes.rnr_retry = kRetries;
  attributes.sq_psn = first_packet_;
  change(attributes,
         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
         "start");
}

bool RcQueuePair::write(const Write& write) {
  if (pair_ == nullptr || written_ - done_ >= writes_) return false;
  ibv_sge pieces[2] = {};
  int count = 0;
  std::size_t bytes = 0;
  for (const Piece& piece : write.pieces) {
    pieces[count++] = {reinterpret_cast<std::uintptr_t>(piece.data), static_cast<std::uint32_t>(piece.bytes),
                       piece.local_key};
    bytes += piece.bytes;
  }
  ibv_send_wr request{};
  request.wr_id = written_ + 1;
  request.sg_list = pieces;
  request.num_sge = count;
  request.opcode = write.tells ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
  request.imm_data = htonl(write.word);
  request.wr.rdma.remote_addr = write.to.address;
  request.wr.rdma.rkey = write.to.remote_key;
  if (write.awaited || request.wr_id % kReportEvery == 0) request.send_flags |= IBV_SEND_SIGNALED;
  if (bytes <= most_inline_ && most_inline_ > 0) request.send_flags |= IBV_SEND_INLINE;
  ibv_send_wr* bad = nullptr;
  if (const int error = ibv_post_send(pair_.get(), &request, &bad); error != 0) {
    if (error == ENOMEM) return false;
    if (why_.empty()) why_ = std::string("the device took no write: ") + std::strerror(error);
    return false;
  }
  ++written_;
  return true;
}

std::size_t RcQueuePair::poll(std::span<Event> events) {
  if (queue_ == nullptr) return 0;
  constexpr std::size_t kAtOnce = 32;
  ibv_wc found[kAtOnce];
  const int got = ibv_poll_cq(queue_.get(), static_cast<int>(std::min(events.size(), kAtOnce)), found);
  std::size_t count = 0;
  for (int i = 0; i < got; ++i) {
    const ibv_wc& completion = found[i];
    if (completion.status != IBV_WC_SUCCESS) {
      if (why_.empty()) why_ = words_for(completion.status);
    } else if ((completion.opcode & IBV_WC_RECV) != 0) {
      events[count++] = {
          .kind = Event::Kind::arrived, .word = ntohl(completion.imm_data), .bytes = completion.byte_len};
      ++used_up_;
    } else {
      done_ = completion.wr_id;
      events[count++] = {.kind = Event::Kind::done, .count = done_};
    }
  }
  if (got < 0 && why_.empty()) why_ = "the completion queue failed";
  // Whether a completion or a write that was not taken said so. Behind what arrived before it.
  if (!why_.empty() && !has_told_ && count < events.size()) {
    events[count++] = {.kind = Event::Kind::failed};
    has_told_ = true;
  }
  if (used_up_ >= kReplenishedAtOnce && why_.empty()) {
    request(used_up_ / kReplenishedAtOnce * kReplenishedAtOnce);
    used_up_ %= kReplenishedAtOnce;
  }
  return count;
}

class Device final : public Fabric {
 public:
  Device(std::shared_ptr<const Opened> opened, std::string name) : opened_(std::move(opened)), name_(std::move(name)) {}

  std::unique_ptr<QueuePair> queue_pair(const Sizes& sizes) override {
    return std::make_unique<RcQueuePair>(opened_, sizes);
  }
  std::unique_ptr<Registration> register_memory(std::byte* data, std::size_t bytes) override;
  std::size_t most_in_a_write() const override {
    return std::min<std::size_t>(opened_->attributes.max_msg_sz, 4 << 20);
  }
  int bell() const override { return opened_->bell->fd; }
  void hush() override;

 private:
  const std::shared_ptr<const Opened> opened_;
  const std::string name_;
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
  pollfd ready{opened_->bell->fd, POLLIN, 0};
  while (::poll(&ready, 1, 0) == 1 && ibv_get_cq_event(opened_->bell.get(), &queue, &context) == 0)
    ibv_ack_cq_events(queue, 1);
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
