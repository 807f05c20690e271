// One rank's end of verbs: what its channels share.
#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <utility>

#include "transport/mailbox.h"
#include "transport/sleeper.h"
#include "transport/verbs/fabric.h"
#include "transport/verbs/registry.h"

namespace tutti::internal::verbs {

class Channel;

struct Endpoint {
  Endpoint(Sleeper& of_rank, std::shared_ptr<Fabric> to)
      : sleeper(of_rank), fabric(std::move(to)), mailboxes(of_rank), registry(fabric) {}

  Sleeper& sleeper;
  const std::shared_ptr<Fabric> fabric;
  Mailboxes mailboxes;
  Registry registry;
  std::set<Channel*> channels;  // each from its beginning to its end
  std::size_t queue_pairs = 0;
};

}  // namespace tutti::internal::verbs
