// Functions of nccl_device.h, for kernels that communicate themselves, which are not served. NCCL's own must not be
// called in their place: they would read its communicators. That header needs CUDA's compiler, so its types are told
// again here.
#include "nccl/communicator.h"

struct ncclTeam {
  int nRanks, rank, stride;
};
struct ncclDevComm;
struct ncclDevCommRequirements;
struct ncclDevResourceRequirements;
struct ncclGinBarrierHandle;
struct ncclLLA2AHandle;
struct ncclLsaBarrierHandle;

using namespace tutti::nccl;

namespace {

ncclResult_t refuse_kernels(const char* function) {
  return refuse(ncclInvalidUsage, function, "tutti does not serve kernels that communicate themselves (nccl_device.h)");
}

}  // namespace

extern "C" {

ncclResult_t ncclDevCommCreate(ncclComm_t, const ncclDevCommRequirements*, ncclDevComm*) {
  return refuse_kernels(__func__);
}
ncclResult_t ncclDevCommDestroy(ncclComm_t, const ncclDevComm*) { return refuse_kernels(__func__); }
ncclResult_t ncclGinBarrierCreateRequirement(ncclComm_t, ncclTeam, int, ncclGinBarrierHandle*,
                                             ncclDevResourceRequirements*) {
  return refuse_kernels(__func__);
}
ncclResult_t ncclLsaBarrierCreateRequirement(ncclTeam, int, ncclLsaBarrierHandle*, ncclDevResourceRequirements*) {
  return refuse_kernels(__func__);
}
ncclResult_t ncclLLA2ACreateRequirement(int, int, ncclLLA2AHandle*, ncclDevResourceRequirements*) {
  return refuse_kernels(__func__);
}

// All ranks; those whose memory a kernel of this rank reads and writes, which is this rank alone; and the ranks that
// are at one place in each such team.
ncclTeam ncclTeamWorld(ncclComm_t comm) { return {comm->size, comm->rank, 1}; }
ncclTeam ncclTeamLsa(ncclComm_t) { return {1, 0, 1}; }
ncclTeam ncclTeamRail(ncclComm_t comm) { return ncclTeamWorld(comm); }
int ncclTeamRankToWorld(ncclComm_t comm, ncclTeam team, int rank) {
  return comm->rank + (rank - team.rank) * team.stride;
}
int ncclTeamRankToLsa(ncclComm_t, ncclTeam team, int rank) { return (rank - team.rank) * team.stride; }

}  // extern "C"

TUTTI_NCCL_ALSO_AS_P(ncclDevCommCreate);
TUTTI_NCCL_ALSO_AS_P(ncclDevCommDestroy);
TUTTI_NCCL_ALSO_AS_P(ncclGinBarrierCreateRequirement);
TUTTI_NCCL_ALSO_AS_P(ncclLsaBarrierCreateRequirement);
TUTTI_NCCL_ALSO_AS_P(ncclLLA2ACreateRequirement);
TUTTI_NCCL_ALSO_AS_P(ncclTeamWorld);
TUTTI_NCCL_ALSO_AS_P(ncclTeamLsa);
TUTTI_NCCL_ALSO_AS_P(ncclTeamRail);
TUTTI_NCCL_ALSO_AS_P(ncclTeamRankToWorld);
TUTTI_NCCL_ALSO_AS_P(ncclTeamRankToLsa);
