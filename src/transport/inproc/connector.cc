#include "transport/inproc/connector.h"

#include <utility>

#include "transport/inproc/transport.h"

namespace tutti::internal::inproc {
namespace {

class InprocConnector final : public Connector {
 public:
  InprocConnector(std::shared_ptr<Hub> hub, Sleeper& sleeper) : transport_(std::move(hub), sleeper) {}

  std::string_view name() const override { return "inproc"; }
  std::optional<Route> route() const override { return std::nullopt; }
  bool shares_memory() const override { return true; }
  internal::Transport& begin(const JobRanks&) override { return transport_; }
  void attach(std::uint64_t, int, int) override {}
  void fail(std::uint64_t, int, const std::string&) override {}

 private:
  Transport transport_;
};

}  // namespace

std::unique_ptr<Connector> make_connector(std::shared_ptr<Hub> hub, Sleeper& sleeper) {
  return std::make_unique<InprocConnector>(std::move(hub), sleeper);
}

}  // namespace tutti::internal::inproc
