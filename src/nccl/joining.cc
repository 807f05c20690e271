// How a program gets communicators. tutti_comm_init_rank() says how they join in a group.
#include <atomic>
#include <new>

#include "nccl/communicator.h"
#include "nccl/device.h"

namespace tutti::nccl {
namespace {

static_assert(sizeof(ncclUniqueId) == sizeof(tutti_unique_id));

tutti_unique_id id_of(const ncclUniqueId& id) {
  tutti_unique_id copy;
  __builtin_memcpy(&copy, &id, sizeof copy);
  return copy;
}

// What else it may say changes nothing here: it tunes NCCL, or allows what no function here does, to return early.
bool is_initialized(const ncclConfig_t* config) {
  constexpr ncclConfig_t kInitial = NCCL_CONFIG_INITIALIZER;
  return config == nullptr || config->magic == kInitial.magic;
}

ncclResult_t drop(ncclComm* joining, ncclResult_t result) {
  delete joining;
  return result;
}

// `make(&comm)` joins, now or when the group ends.
template <class Make>
ncclResult_t join(const char* function, ncclComm_t* to, int device, const ncclConfig_t* config, bool may_be_none,
                  const Make& make) {
  if (to == nullptr) return refuse(ncclInvalidArgument, function, "the pointer to the new communicator is null");
  *to = nullptr;
  if (!is_initialized(config))
    return refuse(ncclInvalidArgument, function, "the config does not begin with NCCL_CONFIG_INITIALIZER");
  auto* const joining = new (std::nothrow) ncclComm{.device = device, .may_be_none = may_be_none};
  if (joining == nullptr) return refuse(ncclSystemError, function, "there is no memory left");
  const ncclResult_t result = called(make(&joining->comm));
  if (result == ncclSuccess && is_grouping()) {
    joining->to = to;
    keep_until_group_ends(joining);
    return result;
  }
  return result == ncclSuccess ? hand_over(joining, to) : drop(joining, result);
}

ncclResult_t join_rank(const char* function, ncclComm_t* to, int nranks, const ncclUniqueId& id, int rank, int device,
                       const ncclConfig_t* config) {
  return join(function, to, device, config, false,
              [&](tutti_comm_t* made) { return tutti_comm_init_rank(made, nranks, id_of(id), rank); });
}

// A group that tutti_group_start() has opened will still write to what it is to join.
std::atomic<ncclComm*> never_freed = nullptr;

}  // namespace

ncclResult_t hand_over(ncclComm* made, ncclComm_t* to) {
  if (made->comm != nullptr) {
    tutti_comm_rank(made->comm, &made->rank);
    tutti_comm_count(made->comm, &made->size);
    *to = made;
  } else if (made->may_be_none) {
    delete made;
  } else {
    made->joined_before = never_freed.exchange(made);
    return refuse(ncclInvalidUsage, "a join", "a group is open that ncclGroupStart() has not opened");
  }
  return ncclSuccess;
}

}  // namespace tutti::nccl

using namespace tutti::nccl;

ncclResult_t ncclGetUniqueId(ncclUniqueId* uniqueId) {
  return told(tutti_get_unique_id(reinterpret_cast<tutti_unique_id*>(uniqueId)));
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank) {
  return join_rank(__func__, comm, nranks, commId, rank, current_device(), nullptr);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank, ncclConfig_t* config) {
  return join_rank(__func__, comm, nranks, commId, rank, current_device(), config);
}

// All ranks meet where the first id says: one place serves as many ranks as there are.
ncclResult_t ncclCommInitRankScalable(ncclComm_t* newcomm, int nranks, int myrank, int nId, ncclUniqueId* commIds,
                                      ncclConfig_t* config) {
  if (nId < 1 || commIds == nullptr) return refuse(ncclInvalidArgument, __func__, "there is no unique id");
  return join_rank(__func__, newcomm, nranks, commIds[0], myrank, current_device(), config);
}

ncclResult_t ncclCommInitAll(ncclComm_t* comm, int ndev, const int* devlist) {
  if (comm == nullptr) return refuse(ncclInvalidArgument, __func__, "the array of communicators is null");
  if (ndev < 1) return refuse(ncclInvalidArgument, __func__, "there must be at least one rank");
  ncclUniqueId id;
  ncclResult_t result = ncclGetUniqueId(&id);
  ncclGroupStart();
  for (int rank = 0; rank < ndev && result == ncclSuccess; ++rank)
    result = join_rank(__func__, &comm[rank], ndev, id, rank, devlist != nullptr ? devlist[rank] : rank, nullptr);
  const ncclResult_t ended = ncclGroupEnd();
  return result != ncclSuccess ? result : ended;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config) {
  if (color < NCCL_SPLIT_NOCOLOR)
    return refuse(ncclInvalidArgument, __func__, "the color is negative, and not NCCL_SPLIT_NOCOLOR");
  return join(__func__, newcomm, comm != nullptr ? comm->device : -1, config, color == NCCL_SPLIT_NOCOLOR,
              [&](tutti_comm_t* made) { return tutti_comm_split(Inside(comm), color, key, made); });
}

TUTTI_NCCL_ALSO_AS_P(ncclGetUniqueId);
TUTTI_NCCL_ALSO_AS_P(ncclCommInitRank);
TUTTI_NCCL_ALSO_AS_P(ncclCommInitRankConfig);
TUTTI_NCCL_ALSO_AS_P(ncclCommInitRankScalable);
TUTTI_NCCL_ALSO_AS_P(ncclCommInitAll);
TUTTI_NCCL_ALSO_AS_P(ncclCommSplit);
