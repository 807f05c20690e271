// A CUDA device that there is not: the functions of CUDA's runtime library and of cuda::driver() that this project
// calls, done by the CPU. A test that lists tutti_fake_cuda in USES (instead of tutti_cuda) has src/cuda as it is,
// and this below it. What CUDA leaves undefined, or lets pass by luck, fails here:
//   - Device memory is at addresses that the host may not touch: a host access faults. Addresses are never used again.
//   - Fresh memory holds garbage. What a copy or a kernel touches must be memory that lives, whole; a kernel reaches no
//     pageable memory and no other device's, an asynchronous copy no pageable memory. Else the device fails for good,
//     with cudaErrorIllegalAddress, and stderr is told why.
//   - Each stream is a thread of its own. Only what CUDA orders is ordered: what it does not is a race, and
//     ThreadSanitizer sees it; set_delays() makes it show elsewhere, too.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <ostream>

namespace tutti::internal::fake {

// All as at the start of the process: one device, no delays or faults, nothing started. What a test left behind is
// abandoned: its streams stop, its memory is gone. No other thread may be in CUDA.
void reset();

inline constexpr int kNoDriver = -1, kMaxDevices = 8;
// How many there are, or kNoDriver. Before anything is started.
void set_devices(int count);

// Up to 200 us before each operation of a stream, at random; the seed and what is called decide. 0: none.
void set_delays(std::uint64_t seed);

// As narrow as a driver may be. One queue: all streams of a device share it, so that each waits for whatever was put on
// any before (CUDA_DEVICE_MAX_CONNECTIONS=1). One lock: each call of CUDA's has it, also while it waits for memory to
// be unused before it is freed, or for room behind the 1024 operations that a stream holds at most; none has it that
// only synchronizes.
void set_one_queue();
void set_one_lock();
bool is_driver_locked();  // whether a call has that lock just now

// Of streams: kernels, copies (and fills), host functions. Of memory: what is allocated, and what is registered.
enum class Call { allocation, registration, copy, launch, host_function, event };
// The `nth` next one of these (1: the next) fails. What CUDA reports of a device that has failed
// (cudaErrorLaunchFailure, cudaErrorIllegalAddress, ...) of a copy or a kernel fails the device when its stream gets
// there; anything else is what the call returns, and nothing is done.
void fail(Call call, std::uint64_t nth, cudaError_t error);
// How many were called since the start.
std::uint64_t calls(Call call);

// What has been made and not been freed.
struct Outstanding {
  int allocations = 0, registrations = 0, streams = 0, events = 0;
  friend bool operator==(const Outstanding&, const Outstanding&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Outstanding& it) {
    return out << it.allocations << " allocations, " << it.registrations << " registrations, " << it.streams
               << " streams, " << it.events << " events";
  }
};
Outstanding outstanding();

}  // namespace tutti::internal::fake
