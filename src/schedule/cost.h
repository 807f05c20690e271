// What a schedule costs, from what a message and a reduction cost (cost_model.h).
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "schedule/cost_model.h"
#include "schedule/layout.h"
#include "schedule/schedule.h"

namespace tutti::internal {

struct Cost {
  double us = 0;                   // until the last rank ends
  std::size_t max_bytes_sent = 0;  // by the busiest rank
  std::size_t max_bytes_received = 0;
  std::size_t max_bytes_reduced = 0;  // read by the reductions of the rank with most
  int max_messages_sent = 0;
  std::size_t max_bytes_between_hosts = 0;  // sent to other hosts, by the rank that sends most there
  std::size_t messages_between_hosts = 0, bytes_between_hosts = 0;  // of all ranks together
  std::size_t scratch_bytes = 0;                                    // of the rank that needs most
};

// count elements of element_bytes each; partial results have accumulation_bytes. The schedules must be proven: throws
// Error{invalid_argument} where they do not run to their ends.
Cost price(std::span<const Schedule> schedules, const Layout& layout, std::size_t count, std::size_t element_bytes,
           std::size_t accumulation_bytes, const CostModel& model);

// What a message from one rank to another costs. What it refers to must outlive the pricing.
using LinkBetween = std::function<const LinkCost&(int from, int to)>;

// The same where links differ from pair to pair: model.local and model.remote count for nothing. The layout's hosts say
// what counts as sent between hosts, and how many ranks share model.cores.
Cost price(std::span<const Schedule> schedules, const Layout& layout, std::size_t count, std::size_t element_bytes,
           std::size_t accumulation_bytes, const CostModel& model, const LinkBetween& link);

}  // namespace tutti::internal
