// Results and texts, and the version.
#include <cstdio>

#include "nccl/communicator.h"

namespace tutti::nccl {
namespace {

thread_local char own_text[256] = "";  // empty: the last error of this thread is the library's

}  // namespace

ncclResult_t told(tutti_result_t result) {
  if (result != TUTTI_SUCCESS) own_text[0] = '\0';
  return static_cast<ncclResult_t>(result);
}

ncclResult_t refuse(ncclResult_t result, const char* function, const char* why) {
  std::snprintf(own_text, sizeof own_text, "%s: %s", function, why);
  return result;
}

}  // namespace tutti::nccl

using namespace tutti::nccl;

ncclResult_t ncclGetVersion(int* version) {
  if (version == nullptr) return refuse(ncclInvalidArgument, __func__, "the pointer to the answer is null");
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) { return tutti_result_text(static_cast<tutti_result_t>(result)); }
const char* ncclGetLastError(ncclComm_t comm) { return own_text[0] != '\0' ? own_text : tutti_last_error(of(comm)); }

// It would have NCCL read NCCL_DEBUG again.
void ncclResetDebugInit() {}

TUTTI_NCCL_ALSO_AS_P(ncclGetVersion);
TUTTI_NCCL_ALSO_AS_P(ncclGetErrorString);
TUTTI_NCCL_ALSO_AS_P(ncclGetLastError);
extern "C" __attribute__((alias("ncclResetDebugInit"))) void pncclResetDebugInit();
