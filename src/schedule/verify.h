// Proves that the schedules of all ranks, run together, do what the collective promises.
#pragma once

#include <span>
#include <vector>

#include "schedule/layout.h"
#include "schedule/proof.h"
#include "schedule/schedule.h"

namespace tutti::internal {

// schedules[r] is rank r's. Proves, for every interleaving and however little or much the transports buffer:
//   - form: regions, peers and side tables in range; trees well formed; partial and element types agree along each
//     message, as do slices and chunks, row by row; rows of a message lie side by side; slices, chunks and exact_slices
//     are the same on all ranks;
//   - every message sent is received and the other way round;
//   - no deadlock;
//   - no race: a region is never written while it may still be read or written by anyone else (input row 0 and
//     output being the same memory, as in place);
//   - nothing is read that was never written;
//   - the postcondition: on every rank each required output chunk holds each leaf exactly once (all-gather, broadcast:
//     the right rank's data), finished exactly once, the same expression on all ranks; with Order::canonical exactly T;
//     a barrier: every rank's end happens after every rank's start.
// shortcuts[r], where given, is what rank r may do early: then it is proven whichever of them are taken.
Proof verify(std::span<const Schedule> schedules, const Layout& layout, const Goal& goal,
             std::span<const std::vector<Shortcut>> shortcuts = {});

}  // namespace tutti::internal
