// Every algorithm as a function, algorithms::collective::algorithm, and what is claimed of it, …_claims beside it. Both
// are defined in <collective>/<algorithm>.cc, where the idea and the cost are. The function returns rank's schedule;
// the catalogue has checked the arguments (requirements.h).
#pragma once

#include "collectives/claims.h"
#include "collectives/message.h"
#include "schedule/layout.h"
#include "schedule/schedule.h"

namespace tutti::internal {

#define TUTTI_ALGORITHM(collective, name)                                \
  namespace algorithms::collective {                                     \
  Schedule name(int rank, const Layout& layout, const Message& message); \
  extern const AlgorithmClaims name##_claims;                            \
  }
#include "tutti/algorithms.def"

}  // namespace tutti::internal
