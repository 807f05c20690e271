// A reliable-connected queue pair of a real device.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <string>

#include "transport/verbs/fabric.h"

namespace tutti::internal::verbs {

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

// A port that is open.
struct Opened {
  Context context;
  Domain domain;
  Bell bell;
  std::uint8_t port;
  int gid_index;
  ibv_gid gid;
  ibv_port_attr attributes;
};

// Throws Error{system}: `what`, and the system's word for `error`.
[[noreturn]] void refuse(const std::string& what, int error);

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
    if (queue_ != nullptr && !armed_) armed_ = ibv_req_notify_cq(queue_.get(), 0) == 0;
  }
  void rang() { armed_ = false; }
  // The device says so, beside the completions.
  void lost(ibv_event_type event) {
    if (why_.empty()) why_ = std::string("the device reports: ") + ibv_event_type_str(event);
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
  bool armed_ = false;     // a system call each time on some devices
};

}  // namespace tutti::internal::verbs
