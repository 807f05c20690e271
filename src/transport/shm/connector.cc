// Shared memory joins ranks of one host. They exchange it once, by a Unix socket, for all channels of the two.
#include "transport/connector.h"

#include <optional>

#include "topology/machine.h"
#include "transport/shm/transport.h"

namespace tutti::internal::shm {
namespace {

class ShmConnector final : public Connector {
 public:
  explicit ShmConnector(Sleeper& sleeper) : sleeper_(sleeper) {}

  std::string_view name() const override { return "shm"; }
  std::optional<Route> route() const override { return Route{.path = Path::local, .per_communicator = false}; }
  bool shares_memory() const override { return true; }
  std::string distance(int a, int b, const JobRanks& ranks) const override {
    return ranks.host[a] == ranks.host[b] ? "" : "not all ranks share a host; use auto or tcp";
  }

  internal::Transport& begin(const JobRanks& ranks) override {
    transport_.emplace(sleeper_, ring_bytes_for(ranks.neighbours(), ranks.share_processors));
    // Lanes are first written to, and their rings claimed, by peers that may be far.
    transport_->own().keep_near(topology::keep_near_this_thread);
    return *transport_;
  }

  void attach(std::uint64_t, int peer, int fd) override { transport_->attach(peer, fd); }
  void fail(std::uint64_t, int peer, const std::string& why) override { transport_->fail(peer, why); }

 private:
  Sleeper& sleeper_;
  std::optional<Transport> transport_;
};

}  // namespace

std::unique_ptr<Connector> make_connector(const ConnectorContext& context) {
  return std::make_unique<ShmConnector>(context.sleeper);
}

}  // namespace tutti::internal::shm
