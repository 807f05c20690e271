#include "transport/verbs/rc_queue_pair.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

#include "tutti/error.h"

namespace tutti::internal::verbs {
namespace {

// A write is given up, and the peer with it, after kRetries + 1 tries of this many times 4.096 us * 2^kTimeout = 67 ms
// (devices may take up to four times as long): half a second, or two. Seven would mean for ever on some devices.
constexpr int kTimeout = 14;
constexpr int kRetries = 6;
constexpr std::uint32_t kMaxInline = 256;         // bytes, asked for
constexpr std::uint64_t kReportEvery = 16;        // writes
constexpr std::uint32_t kReplenishedAtOnce = 32;  // requests for arrivals

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

// 40 bytes: queue pair number, first packet number, LID, MTU, GID.
struct Told {
  std::uint32_t number, first_packet;
  std::uint16_t lid, mtu;
  std::uint8_t gid[16];
};
static_assert(sizeof(Told) <= QueuePair::kAddressBytes);

}  // namespace

void refuse(const std::string& what, int error) { throw Error(ErrorCode::system, what + ": " + std::strerror(error)); }

RcQueuePair::RcQueuePair(std::shared_ptr<const Opened> opened, const Fabric::Sizes& sizes)
    : opened_(std::move(opened)), writes_(sizes.writes), first_packet_(std::random_device{}() & 0xffffff) {
  const std::uint32_t requests = sizes.arrivals + kReplenishedAtOnce;
  queue_.reset(
      ibv_create_cq(opened_->context.get(), static_cast<int>(writes_ + requests), this, opened_->bell.get(), 0));
  if (queue_ == nullptr) refuse("cannot make a completion queue", errno);
  for (std::uint32_t in_line = kMaxInline;; in_line /= 2) {  // devices differ, and say no without saying how much
    ibv_qp_init_attr wanted{};
    wanted.qp_context = this;
    wanted.send_cq = wanted.recv_cq = queue_.get();
    wanted.qp_type = IBV_QPT_RC;
    wanted.cap = {.max_send_wr = writes_,
                  .max_recv_wr = requests,
                  .max_send_sge = 2,
                  .max_recv_sge = 1,
                  .max_inline_data = in_line};
    pair_.reset(ibv_create_qp(opened_->domain.get(), &wanted));
    most_inline_ = std::min(wanted.cap.max_inline_data, kMaxInline);
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
    if (error != ENOMEM && why_.empty()) why_ = std::string("the device took no write: ") + std::strerror(error);
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
  for (const ibv_wc& completion : std::span(found).first(static_cast<std::size_t>(std::max(got, 0)))) {
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
  // Whether a completion, a write that was not taken or the device said so. Behind what arrived before it.
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

}  // namespace tutti::internal::verbs
