// RDMA without a device: queue pairs of one process whose writes are copies, made later than they were asked for, by
// whoever polls next. What a channel must not do (write to a peer that has no request for it, with a wrong key, beyond
// registered memory, or from memory that is no longer registered) fails the test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "transport/verbs/fabric.h"

namespace tutti::internal {

class FakeNetwork;
std::shared_ptr<FakeNetwork> make_fake_network();

struct FakeLimits {
  std::size_t most_inline = 128;
  std::size_t most_in_a_write = 1 << 20;
  std::size_t most_registered = std::numeric_limits<std::size_t>::max();  // bytes: beyond, registering fails
};

// One rank's device in `network`, which all fabrics that meet share.
std::shared_ptr<verbs::Fabric> make_fake_fabric(std::shared_ptr<FakeNetwork> network, const FakeLimits& limits = {});

// From now on no write arrives anywhere in `network`: whoever writes fails, and whoever only waits does not notice.
void cut(FakeNetwork& network);

// From now on each device of `network` reports this error_text. Nothing else changes.
void set_error_text(FakeNetwork& network, const std::string& error_text);

}  // namespace tutti::internal
