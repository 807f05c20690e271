// What this library cannot do. It has the names, so that a program links, and is told where it comes to them.
#include "nccl/communicator.h"

using namespace tutti::nccl;

ncclResult_t ncclCommShrink(ncclComm_t, int*, int, ncclComm_t* newcomm, ncclConfig_t*, int) {
  if (newcomm != nullptr) *newcomm = nullptr;
  return refuse(
      ncclInvalidUsage, __func__,
      "tutti has no way yet to go on without some of the ranks; ncclCommSplit() makes a communicator of fewer "
      "ranks while all are there");
}

// The group stays open.
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t*) {
  return refuse(ncclInvalidUsage, __func__,
                "tutti does not say how long a group will take; end it with ncclGroupEnd()");
}

TUTTI_NCCL_ALSO_AS_P(ncclCommShrink);
TUTTI_NCCL_ALSO_AS_P(ncclGroupSimulateEnd);
