// The alpha-beta-gamma price of a schedule: Hockney's model with a reduction term (Thakur, Rabenseifner, Gropp 2005).
#pragma once

#include <cstddef>
#include <span>

#include "schedule/layout.h"
#include "schedule/schedule.h"

namespace tutti {

struct CostModel {
  double alpha_us = 0.1;            // a message's fixed cost, on the same host
  double beta_us_per_byte = 1e-4;   // a byte through one channel
  double gamma_us_per_byte = 5e-5;  // a source byte combined
  double remote_alpha_us = 5;       // the same between hosts
  double remote_beta_us_per_byte = 8e-4;
};

struct Cost {
  double us = 0;                   // until the last rank ends, ranks sending one message at a time
  std::size_t max_bytes_sent = 0;  // by the busiest rank
  std::size_t max_bytes_received = 0;
  std::size_t max_bytes_between_hosts = 0;  // sent to other hosts, by the rank that sends most there
  std::size_t bytes_between_hosts = 0;      // the same, of all ranks together
  int max_messages_sent = 0;
  std::size_t scratch_bytes = 0;  // of the rank that needs most
};

// count elements of element_bytes each; partial results have accumulation_bytes. The schedules must be proven: throws
// Error{invalid_argument} where they do not run to their ends.
Cost price(std::span<const Schedule> schedules, const Layout& layout, std::size_t count, std::size_t element_bytes,
           std::size_t accumulation_bytes, const CostModel& model);

}  // namespace tutti
