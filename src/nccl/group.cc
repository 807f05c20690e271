// Groups of calls. An error of a call that a group holds is the group's error too, as programs may ask only there.
#include "nccl/communicator.h"

namespace tutti::nccl {
namespace {

struct OpenGroup {
  int depth = 0;
  ncclResult_t error = ncclSuccess;
  ncclComm* joining = nullptr;  // the last one
};
thread_local OpenGroup open;

// Where the group has failed, nothing has been joined.
ncclResult_t hand_over_all(ncclComm* joining, ncclResult_t result) {
  while (joining != nullptr) {
    ncclComm* const before = joining->joined_before;
    if (result != ncclSuccess && joining->comm == nullptr) {
      delete joining;
    } else if (const ncclResult_t given = hand_over(joining, joining->to); result == ncclSuccess) {
      result = given;
    }
    joining = before;
  }
  return result;
}

}  // namespace

bool is_grouping() { return open.depth > 0; }

void keep_until_group_ends(ncclComm* joining) {
  joining->joined_before = open.joining;
  open.joining = joining;
}

ncclResult_t called(tutti_result_t result) {
  const ncclResult_t as_nccl = told(result);
  if (is_grouping() && open.error == ncclSuccess) open.error = as_nccl;
  return as_nccl;
}

}  // namespace tutti::nccl

using namespace tutti::nccl;

ncclResult_t ncclGroupStart() {
  ++open.depth;
  return told(tutti_group_start());
}

ncclResult_t ncclGroupEnd() {
  const ncclResult_t result = told(tutti_group_end());
  if (open.depth == 0 || --open.depth > 0) return result;
  const OpenGroup ended = open;
  open = {};
  const ncclResult_t joined = hand_over_all(ended.joining, result);
  return joined != ncclSuccess ? joined : ended.error;
}

TUTTI_NCCL_ALSO_AS_P(ncclGroupStart);
TUTTI_NCCL_ALSO_AS_P(ncclGroupEnd);
