// What an ncclComm_t is, and how the functions of NCCL end.
#pragma once

#include <nccl.h>

#include <atomic>

#include "tutti/tutti.h"

struct ncclComm {
  tutti_comm_t comm = nullptr;  // null while its group has not ended
  int rank = 0, size = 0;
  int device = -1;                    // as ncclCommCuDevice() says it
  std::atomic<bool> is_over = false;  // finalized
  ncclComm_t* to = nullptr;           // in a group: where the program wants it
  ncclComm* joined_before = nullptr;  // in a group: the one that joins before it
  bool may_be_none = false;           // a split without a color gives none
  std::atomic<int> inside = 0;        // calls that have not returned
};

namespace tutti::nccl {

// The result, in NCCL's words. The library has kept the text of an error.
ncclResult_t told(tutti_result_t result);

// Of a call that a group may hold: its error is the group's error too.
ncclResult_t called(tutti_result_t result);

// An error of this library's own; it keeps the text of at most 255 bytes, "FUNCTION: WHY".
ncclResult_t refuse(ncclResult_t result, const char* function, const char* why);

// What is handed on to the library, which refuses null.
inline tutti_comm_t of(ncclComm_t comm) { return comm != nullptr ? comm->comm : nullptr; }

// Counts a call as long as it lasts, so that ncclCommAbort() frees nothing under it.
class Inside {
 public:
  explicit Inside(ncclComm_t comm) : comm_(comm) {
    if (comm_ != nullptr) ++comm_->inside;
  }
  ~Inside() {
    if (comm_ != nullptr) --comm_->inside;
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  operator tutti_comm_t() const { return of(comm_); }

 private:
  const ncclComm_t comm_;
};

// A communicator that a group of this thread is to join.
void keep_until_group_ends(ncclComm* joining);
bool is_grouping();

// Gives the program the communicator that has been joined; null where a split gives none.
ncclResult_t hand_over(ncclComm* made, ncclComm_t* to);

}  // namespace tutti::nccl

// NCCL has each function under a second name, so that a profiler can put its own in front of the first.
#define TUTTI_NCCL_ALSO_AS_P(name) extern "C" __attribute__((alias(#name))) decltype(name) p##name
