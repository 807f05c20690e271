// What the parameters predict, held against what the algorithms then take.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "collectives/catalogue.h"
#include "selection/choose.h"
#include "tutti/communicator.h"

namespace tutti::internal::tools {

struct Check {
  const AlgorithmEntry* entry;
  std::string transport;  // shm or tcp
  std::size_t bytes;      // of the whole message
  bool chosen;            // by the table
  double predicted_us, measured_us;
  double error() const;  // relative to what was measured
};

// Every canonical algorithm of the catalogue at every size. Collective; ranks of one host, whose links are all of
// `transport`. By the table of `world`, which all ranks have. tell() hears of every round.
std::vector<Check> check_predictions(Communicator& world, const std::string& transport,
                                     const std::vector<std::size_t>& sizes, int rounds,
                                     const std::function<void(int)>& tell);

// The middle one of the relative errors.
double median_error(const std::vector<Check>& checks);

// Microseconds that an algorithm takes on ranks of one host that reach each other by `transport` alone.
double predict(const AlgorithmEntry& entry, int ranks, std::size_t bytes, int chunks, const CostModel& model,
               const std::string& transport);

}  // namespace tutti::internal::tools
