// Ranks that are threads of one process, with buffers on one GPU, need no messages. The last rank to come to a call
// puts it on the device: one kernel that reads all inputs and writes all outputs, behind the events of all others.
// No kernel waits for a rank. The bits are the schedule's: both combine in the canonical order.
//
// Device memory of other processes, mapped into this one, would come the same way: what a Participant brings is all
// that the one who comes last needs to know.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "cuda/event_pool.h"
#include "cuda/stream.h"
#include "tutti/error.h"
#include "types/call.h"

namespace tutti::internal {

// By which others know that a device has done what one rank has put on one stream.
struct Met {
  explicit Met(int device) : done(device), events(device) {}
  cuda::Semaphore done;    // for hosts, which look at it without calling CUDA
  cuda::EventPool events;  // for streams
  std::uint32_t last = 0;  // the number in `done` of what was put there last
};

// One rank in one call. If device is -1, its buffers lie elsewhere, and only the tag counts.
struct Participant {
  Tag tag;
  int device = -1;
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  std::vector<const cuda::Event*> ready;  // what must be done before its buffers are touched; outlive the Participation
  cuda::Stream stream = nullptr;  // of that device; what is put on it goes there if this rank is the last to come
  std::shared_ptr<Met> met;       // of that stream
};

// More ranks than one kernel has targets meet by messages.
inline constexpr int kMaxParticipants = 64;

// Shared by the ranks of one process. Thread-safe.
class DeviceRendezvous {
 public:
  enum class State : std::uint8_t {
    open,      // somebody is missing
    apart,     // not all have their buffers on one device: it is done by messages
    together,  // it is on the device
    off,       // somebody has left before it was
  };

  // A rank's part in a call; leaves when it goes. Not thread-safe itself.
  class Participation {
   public:
    ~Participation();
    Participation(const Participation&) = delete;
    Participation& operator=(const Participation&) = delete;

    State state() const;                   // takes no lock, nor do is_done() and hold()
    int missing() const;                   // the lowest rank that has not come; -1
    bool is_done() const;                  // together: whether the device is
    void hold(cuda::Stream stream) const;  // together: what comes on it waits until the device is
    // What CUDA refused when this rank, the last to come, put it on the device; or nothing.
    const std::optional<Error>& refused() const { return refused_; }
    // Ends what is not on the device yet. True once nobody touches this rank's buffers any more, or will.
    bool withdraw();

   private:
    friend class DeviceRendezvous;
    struct Round;
    Participation(DeviceRendezvous& rendezvous, std::shared_ptr<Round> round);
    DeviceRendezvous& rendezvous_;
    const std::shared_ptr<Round> round_;
    std::optional<Error> refused_;
  };

  // Rank `rank` of `ranks` enters call `sequence` of the communicator. Throws TagMismatch (of the communicator's ranks)
  // where another has entered with another tag.
  std::unique_ptr<Participation> enter(std::uint64_t communicator, std::uint32_t sequence, int ranks, int rank,
                                       const Participant& participant);

 private:
  using Key = std::pair<std::uint64_t, std::uint32_t>;
  void leave(const Key& key);

  std::unique_lock<std::mutex> locked();

  std::mutex mutex_;  // guards everything in here, and rounds until they are together
  std::map<Key, std::shared_ptr<Participation::Round>> rounds_;
};

}  // namespace tutti::internal
