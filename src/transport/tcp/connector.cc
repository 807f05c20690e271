// TCP joins any two ranks, by a connection for each channel.
#include "transport/connector.h"

#include "transport/tcp/transport.h"

namespace tutti::internal::tcp {
namespace {

class TcpConnector final : public Connector {
 public:
  explicit TcpConnector(Sleeper& sleeper) : transport_(sleeper) {}

  std::string_view name() const override { return "tcp"; }
  std::optional<Route> route() const override { return Route{.path = Path::tcp, .per_communicator = true}; }
  bool wakes_sleepers() const override { return true; }
  internal::Transport& begin(const JobRanks&) override { return transport_; }
  void attach(std::uint64_t communicator, int peer, int fd) override { transport_.attach(communicator, peer, fd); }
  void fail(std::uint64_t communicator, int peer, const std::string& why) override {
    transport_.fail(communicator, peer, why);
  }

 private:
  Transport transport_;
};

}  // namespace

std::unique_ptr<Connector> make_connector(const ConnectorContext& context) {
  return std::make_unique<TcpConnector>(context.sleeper);
}

}  // namespace tutti::internal::tcp
