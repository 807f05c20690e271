// Every algorithm there is, by collective, in the order of tutti/algorithms.def: what the runtime, the tools and the
// tests go through.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "collectives/claims.h"
#include "collectives/message.h"
#include "schedule/layout.h"
#include "schedule/schedule.h"
#include "tutti/types.h"

namespace tutti::internal {

struct AlgorithmEntry : AlgorithmClaims {
  Collective collective;
  Algorithm algorithm;
  Schedule (*function)(int rank, const Layout& layout, const Message& message);

  // The rank's schedule. Throws Error{invalid_argument} that names the algorithm: there is no such rank, root or number
  // of chunks, or the algorithm does not take the layout.
  Schedule schedule(int rank, const Layout& layout, const Message& message) const;
};

std::span<const AlgorithmEntry> catalogue();

// nullptr where there is none.
const AlgorithmEntry* find_algorithm(Collective collective, Algorithm algorithm);

// Throws Error{invalid_argument} where the algorithm does not take rows of different lengths.
void require_unequal_rows(const AlgorithmEntry& entry);

std::string name_of(const AlgorithmEntry& entry);  // "broadcast chain"

// All ranks' schedules. Throws as AlgorithmEntry::schedule does.
std::vector<Schedule> build_all(const AlgorithmEntry& entry, const Layout& layout, const Message& message);

}  // namespace tutti::internal
