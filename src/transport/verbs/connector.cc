// RDMA joins ranks that have a port each. A TCP connection for each channel carries the greeting, and tells of the end.
#include "transport/connector.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "topology/machine.h"
#include "transport/verbs/device.h"
#include "transport/verbs/transport.h"
#include "tutti/error.h"

namespace tutti::internal::verbs {
namespace {

constexpr std::size_t kMaxTriedOut = 32;  // peers, before verbs is used unasked

class VerbsConnector final : public Connector {
 public:
  explicit VerbsConnector(const ConnectorContext& context)
      : device_(context.settings.verbs_device),
        request_(PortRequest::parse(device_, context.settings.verbs_gid)),
        sleeper_(context.sleeper) {}

  std::string_view name() const override { return "verbs"; }
  std::optional<Route> route() const override { return Route{.path = Path::tcp, .per_communicator = true}; }
  std::string requested_by() const override { return device_.empty() ? "" : "TUTTI_VERBS_DEVICE asks for " + device_; }

  // Told to use verbs, a rank tries one peer, and reports what is wrong later. Unasked, it uses verbs only if resources
  // suffice for every peer.
  std::string probe(bool is_forced, int size) override try {
    fabric_ = open_device(request_, topology::node_of_this_thread());
    const auto peers = static_cast<std::size_t>(size - 1);
    try_out(*fabric_, is_forced ? 1 : std::min(peers, kMaxTriedOut));
    return "";
  } catch (const Error& error) {
    return error.what();
  }

  internal::Transport& begin(const JobRanks&) override { return transport_.emplace(sleeper_, std::move(fabric_)); }

  void drop() override { fabric_.reset(); }

  void attach(std::uint64_t communicator, int peer, int fd) override { transport_->attach(communicator, peer, fd); }
  void fail(std::uint64_t communicator, int peer, const std::string& why) override {
    transport_->fail(communicator, peer, why);
  }

 private:
  const std::string device_;
  const PortRequest request_;
  Sleeper& sleeper_;
  std::shared_ptr<Fabric> fabric_;
  std::optional<Transport> transport_;
};

}  // namespace

std::unique_ptr<Connector> make_connector(const ConnectorContext& context) {
  return std::make_unique<VerbsConnector>(context);
}

}  // namespace tutti::internal::verbs
