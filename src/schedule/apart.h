// A schedule for a rank whose output is the memory of its input, where rows come to lie elsewhere than they were.
#pragma once

#include "schedule/schedule.h"

namespace tutti::internal {

// Does what `schedule` does, whose input and output lie apart: first copies all that it reads of the input to relay,
// and reads it there. The messages are the same, so each rank may be in place or not. No message may be of several rows
// of the input.
Schedule with_input_apart(const Schedule& schedule);

}  // namespace tutti::internal
