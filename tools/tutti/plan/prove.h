// The proof of the plans of one call: of what would be executed.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "collectives/catalogue.h"
#include "schedule/proof.h"

namespace tutti::internal::tools {

struct CallProof {
  Proof proof;
  std::string of_plans;  // a line for people, where it holds
};

// Of a call whose message has that many bytes of float32, or as many as make whole rows of it. One leaf a rank, as
// every call has. Proves the schedules too, which are the entry's.
CallProof prove_call(const AlgorithmEntry& entry, const Layout& layout, const Goal& goal,
                     std::span<const Schedule> schedules, int chunks, std::uint64_t bytes);

}  // namespace tutti::internal::tools
