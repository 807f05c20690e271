// Proves plans: what runs is what was proven.
#pragma once

#include <span>

#include "executor/plan.h"
#include "schedule/layout.h"
#include "schedule/proof.h"
#include "schedule/schedule.h"

namespace tutti::internal {

// plans[r] is rank r's, made of schedules[r]; packed, and rows[r], if they are not all of one length: as its Cut says.
// Proves of every part of the call, as Operation runs it:
//   - each step is the schedule's, in bytes: all ranks agree which bytes of the message a chunk has, no two chunks
//     share any, together they are the message, and all lie in the buffers that the plan asks the caller for;
//   - messages are counted, those among them that a call waits for, and the workspace is measured, as the steps want
//     it;
//   - each prepared reduction gives what reduce() gives, of some numbers that show the order of combination;
//   - the schedules do what is asked (verify()), whichever of the stores and jumps that the plan has fused are taken.
// Shares no code with what makes plans.
Proof prove_plans(std::span<const Plan* const> plans, std::span<const Schedule> schedules, const Layout& layout,
                  const Goal& goal, bool packed = false, std::span<const CallRows> rows = {});

}  // namespace tutti::internal
