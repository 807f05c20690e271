// One call of a communicator, from when it is made until it is over.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "executor/device_rendezvous.h"
#include "executor/operation.h"
#include "executor/plan.h"
#include "runtime/fused.h"
#include "staging/staged_call.h"
#include "tutti/error.h"
#include "tutti/operator.h"
#include "types/call.h"

namespace tutti::internal {

class Group;

// What else a call is made with.
struct Terms {
  void* stream = nullptr;                // a cudaStream_t
  std::chrono::milliseconds timeout{0};  // 0: the communicator's
  std::uint64_t label = 0;               // Call::labelled: a user's tag, or a digest
  std::optional<Scalar> scalar{};        // of premul_sum
};

// What a rank brings.
struct RequestInput {
  const std::byte* data = nullptr;
  std::optional<Scalar> scalar;           // of premul_sum: what the data is multiplied by
  std::unique_ptr<std::byte[]> products;  // where these lie if they have no other place
};

// Under the engine's lock.
class Request {
 public:
  // waiting -> entered <-> running -> over, the middle two once for each part of the plan. A communicator that fails
  // gives up its requests: those that a device has a part in become revoked, and then over; the others become over.
  enum class Stage : std::uint8_t {
    waiting,  // for the calls before it
    grouped,  // for the end of the group of calls that it is part of (call_group.h)
    entered,  // this rank has entered the call; the input of the part may still be on its way from the device
    running,  // the operation of the part has started
    revoked,  // the call is given up, and a device may still touch its memory
    over,     // done or, if there is an `error`, failed
  };
  bool is_over() const { return stage == Stage::over; }
  Tag tag() const { return Call::numbered(Call::labelled(plan->tag, label), sequence); }
  Call call() const { return Call::unpack(tag()); }

  std::shared_ptr<Group> group;  // of a started one: keeps the communicator, which goes last, while the Work lives
  const Plan* plan = nullptr;
  std::uint32_t sequence = 0;  // of the communicator's calls, from 1
  std::uint64_t label = 0;
  std::chrono::milliseconds timeout{0};
  RequestInput input;
  std::byte* output = nullptr;
  std::unique_ptr<StagedCall> staged;                              // where a device or a stream has a part in it
  std::unique_ptr<DeviceRendezvous::Participation> participation;  // while it is not known to be done by messages
  Operation operation;                                             // of the part that is under way
  std::size_t part = 0;
  Stage stage = Stage::waiting;
  bool waits_device = false;  // what advance() could not go on without
  bool is_sent = false;       // AtOnce::send() has sent what it sends
  bool refused = false;       // CUDA took but a part of it
  bool sleeps = false;        // somebody sleeps until it is over
  bool driven = false;        // by the job's thread
  std::optional<Error> error;
  std::unique_ptr<Fused> fused;  // the calls that are done together by this one
};

}  // namespace tutti::internal
