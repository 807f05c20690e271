#include "transport/unix_socket/connector.h"

#include "transport/tcp/transport.h"

namespace tutti::internal::unix_socket {
namespace {

// What TCP's channels send over a stream socket, this one's may too.
class UnixSocketConnector final : public Connector {
 public:
  explicit UnixSocketConnector(Sleeper& sleeper) : transport_(sleeper) {}

  std::string_view name() const override { return "unix_socket"; }
  std::optional<Route> route() const override { return Route{.path = Path::local, .per_communicator = true}; }
  bool wakes_sleepers() const override { return true; }
  std::string distance(int a, int b, const JobRanks& ranks) const override {
    return ranks.host[a] == ranks.host[b] ? "" : "not all ranks share a host";
  }
  Transport& begin(const JobRanks&) override { return transport_; }
  void attach(std::uint64_t communicator, int peer, int fd) override { transport_.attach(communicator, peer, fd); }
  void fail(std::uint64_t communicator, int peer, const std::string& why) override {
    transport_.fail(communicator, peer, why);
  }

 private:
  tcp::Transport transport_;
};

}  // namespace

std::unique_ptr<Connector> make_connector(const ConnectorContext& context) {
  return std::make_unique<UnixSocketConnector>(context.sleeper);
}

}  // namespace tutti::internal::unix_socket
