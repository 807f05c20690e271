// Runs schedules on real numbers under an adversarial scheduler: the verifier's own oracle. It shares no code with it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "schedule/layout.h"
#include "schedule/schedule.h"
#include "schedule/verify.h"

namespace tutti::internal {

// What one run showed. `error_text` is empty when it ended with every rank's output right.
struct Run {
  std::string error_text;
  std::vector<std::vector<std::uint64_t>> outputs;  // by rank
};

// Runs all ranks to the end, choosing at random (by seed) whose step, whose transfer and which part of a transfer comes
// next: a lent region may be read at any moment between the send and the completion of the receive, a posted region
// written likewise, and a message may be buffered on its way. Elements are integers combined by a hash that is neither
// commutative nor associative when goal.order is canonical, and by addition otherwise, so a leaf lost, doubled or out
// of order shows. Input row 0 and output share memory when in_place.
Run interpret(std::span<const Schedule> schedules, const Layout& layout, const Goal& goal, std::size_t count,
              bool in_place, std::uint64_t seed);

}  // namespace tutti::internal
