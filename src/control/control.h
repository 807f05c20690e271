// The control plane of a job: joining, finding each other, and hearing of each other's end. One thread a rank (Asio),
// asleep except when something happens; it never touches user data.
//
// Shape: rank 0 serves those that join. Afterwards the lowest rank that is there is the hub, to which every other rank
// keeps one control connection. Protocols are sans-I/O state machines (join.h, seat.h, relay.h, handshake.h); sockets,
// timers and the thread stand around them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "control/call_history.h"
#include "tutti/error.h"
#include "tutti/settings.h"
#include "tutti/store.h"
#include "types/path.h"
#include "types/tag.h"

namespace tutti::internal {

// What every rank knows of every rank once all have joined.
struct Member {
  int rank = 0;
  std::string host_id;  // boot id (and network namespace's inode): equal for ranks that may share memory
  std::string address;  // where its data listener is reached from other hosts; empty if it listens on none
  std::uint16_t port = 0;
  std::string local_name;  // abstract Unix socket (without the leading NUL) for ranks of the same host
  std::int64_t pid = 0;
  std::uint64_t started = 0;    // when the process started, in the kernel's ticks; 0: unknown
  std::uint64_t pid_space = 0;  // the inode of the namespace that `pid` is of; 0: unknown
  std::string processors;       // those it may run on, as topology::to_bits() writes them
  std::string obstacles;        // why it cannot use some kinds of transports, as its runtime writes that
  bool sees_gpus = false;       // a driver for GPUs is installed there
};

// What a rank says where all ranks of a communicator have to end in the same way. The answer is a Notice{decided}, an
// event: all hear the same, or none hears one. At a time there is one vote on a communicator.
struct Vote {
  enum class On : std::uint8_t {
    going_on,  // without the ranks that are lost. Decided once all that are left have voted: these are the ranks. None:
               // the ranks that are left are no majority
    making,    // something together. Decided once all have voted: the ranks that have made it. Never, if one of them is
               // gone before, or the communicator has failed: that is what all hear then
  };
  std::uint64_t communicator = 0;
  std::vector<std::int32_t> ranks = {};  // of the job: all of the communicator, in its order
  On on = On::going_on;
  bool has_made = false;    // making: whether this rank has
  std::uint32_t known = 0;  // how many events the rank knew; the control plane sets it
};

// Who says that a rank is lost.
enum class Authority : std::uint8_t {
  kernel,    // that of its host: it is dead, or stands still
  majority,  // of the ranks. It may live, and has to end then
  minority,  // its ranks may be cut off themselves. If the lost rank lives, it goes on without them
};

// A notice from the control plane. Delivered on the control thread.
struct Notice {
  enum class Kind : std::uint8_t {
    // Events: every rank hears them, in the same order (EventLog).
    lost,      // `peer` is dead or was given up: final, every communicator with it fails, with `code`
    left,      // `peer` has left in good order
    decided,   // the vote on communicator `communicator` is over: `ranks`, in its order (struct Vote)
    poisoned,  // `peer` found that communicator `communicator` has failed: `code`, `about` and `message` say why. No
               // message: both have left it, and `peer` had made the call `call` where `about` had made `last`; all
               // zero: it had made none. (Calls of different numbers, or equal ones: the last of each.)
    // To one rank.
    expelled,  // this rank was given up by others, as `peer` says. The runtime never hears so of a minority: all
               // communicators of this rank fail
    answer,    // the answer to probe(): what `peer` did at that sequence
    agreed,    // the answer to farewell(): no rank that left before had made other calls, as far as is known
    differed,  // likewise: `peer` had; `sequence` is the number of its calls, `last` the last of them. If these are
               // transfers, and the communicator is no lane: `peer` has sent them to this rank, which made no such lane
    absent,    // the answer to recall(): `ranks` are there and have not voted; `sequence` is the number of the recall
  };
  Kind kind;
  int peer = -1;  // of the job (world rank)
  std::uint64_t communicator = 0;
  ErrorCode code = ErrorCode::aborted;
  std::string message;               // poisoned, expelled: why. lost: what became of `peer`, which the text calls "it"
  std::uint32_t serial = 0;          // of an event: its number, from 1
  int about = -1;                    // poisoned: the culprit, a rank of the job
  Vote::On on = Vote::On::going_on;  // decided, absent
  std::vector<std::int32_t> ranks = {};       // likewise; of the job, in the order of the communicator
  Authority authority = Authority::majority;  // lost, expelled
  // answer
  std::uint32_t sequence = 0;  // what was asked about; differed: see there
  bool entered = false;  // whether the peer has entered that call; then `call` is its tag (all zero: too long ago)
  Tag call{};
  Tag last{};             // the last call it completed; all zero if none
  bool has_left = false;  // the peer has left the communicator
};

// All calls that a rank has made on a communicator, in a form that can be compared.
struct CallAccount {
  std::uint32_t calls = 0;   // their number
  std::uint64_t digest = 0;  // of all of them, in order
  Tag last{};                // the last of them; all zero if there was none
  friend bool operator==(const CallAccount&, const CallAccount&) = default;
};

// A rank has left a communicator. (Send and receive: each way between two ranks of a communicator is a communicator of
// its own, a lane, which its ends make when they need it.)
struct Farewell {
  std::uint64_t communicator = 0;
  std::int32_t rank = -1;  // of the job, as peer is; the control plane sets it
  std::int32_t ranks = 0;  // that the communicator has
  CallAccount account;
  std::uint64_t whole = 0;  // of a lane: the communicator that it is part of
  std::int32_t peer = -1;   // of a lane: the rank at the other end; -1: it is no lane
  bool goes_on = false;     // calls of the rank's lanes are not over: it says farewell to these later
  struct Departed {
    std::int32_t rank = -1;
    CallAccount account = {};
  };
  std::vector<Departed> done = {};  // what a hub hands on: the ranks that have left the communicator and its lanes
  bool again = false;               // it is said once more, to another hub, which may have heard it
  std::vector<CallRow> rows = {};   // the last ones of the account, the oldest first
};

// What a rank brings. Rank 0 says all of its own to all ranks when they have joined. Of what others bring only what a
// Member has too counts.
struct Announcement {
  std::string text;        // at most kMaxAnnouncedBytes; every rank has the same
  std::string error_text;  // if not empty: why there can be no job; every rank is refused with it, once all have come
  std::string obstacles;   // Member::obstacles, at most kMaxObstacleBytes
  bool sees_gpus = false;
};
inline constexpr std::size_t kMaxAnnouncedBytes = 256 << 10;
inline constexpr std::size_t kMaxObstacleBytes = 4096;

// What a rank says of itself to `tutti status`, and what it does at the signal of Settings::dump_signal. Called on the
// control thread, and not after leave().
struct StatusSource {
  std::function<std::string(bool with_calls)> report;
  std::function<void()> dump;
};

class Control {
 public:
  // As leave(). No handler runs after it has returned.
  virtual ~Control() = default;

  // Says goodbye, and waits until the others' control threads have heard all that this rank has said: a second at
  // most, whatever their ranks are doing. Notices may still come meanwhile. Afterwards nothing else may be called.
  virtual void leave() = 0;

  virtual const std::vector<Member>& members() const = 0;
  virtual int rank() const = 0;
  virtual const std::string& announced() const = 0;  // the announcement's text
  // Once. Returns the job's number, the same on every rank: some digits.
  virtual std::string serve_status(StatusSource source) = 0;

  // --- data connections. Between two ranks the higher one connects, the lower one accepts.
  // Called on the control thread with an authenticated, non-blocking socket, or with fd == -1 and an error. That is an
  // Error{system} where this rank lacks something, such as a descriptor: the peer is not at fault.
  // The receiver of the call owns the fd. One handler serves what it accepted and what it connected.
  using OnConnection = std::function<void(int peer, Path path, std::uint64_t communicator, int fd, const Error* error)>;
  virtual void on_connection(
      OnConnection handler) = 0;  // once, before the first connect(); earlier arrivals are kept for it
  virtual void connect(int peer, Path path, std::uint64_t communicator) = 0;  // thread-safe; peer < rank()

  // --- failure
  using OnNotice = std::function<void(const Notice&)>;
  virtual void on_notice(OnNotice handler) = 0;  // once; earlier notices are kept for it
  // Says that `communicator` has failed, by the fault of the job's rank `about` (-1: of none). A Notice{poisoned}
  // follows on every rank, this one included: of the first failure that the hub heard of, which may be another one.
  // Returns once that is on its way, so that a process that ends right afterwards has said it; after 200 ms at most.
  // Thread-safe.
  virtual void poison(std::uint64_t communicator, ErrorCode code, int about, const std::string& message) = 0;
  // Asks what `peer` did at call `sequence` of `communicator`; a Notice{answer} follows. A peer that has left `whole`,
  // of which `communicator` is a lane, has left the lane too, even if it never made it. For a peer that has left the
  // job, its farewell answers; no answer comes for one that is lost. Thread-safe.
  virtual void probe(int peer, std::uint64_t communicator, std::uint64_t whole, std::uint32_t sequence) = 0;
  virtual void vote(Vote vote) = 0;  // thread-safe
  // Takes this rank's vote on that back, unless it is decided already. A Notice{absent} follows in both cases; behind
  // the Notice{decided}, if there is one. Thread-safe.
  virtual void recall(std::uint64_t communicator, Vote::On on, std::uint32_t number) = 0;
  // Asks all these ranks, as probe() does. Only the first rank that asks about a call gets the answers. Thread-safe.
  virtual void survey(const std::vector<int>& peers, std::uint64_t communicator, std::uint64_t whole,
                      std::uint32_t sequence) = 0;
  // Where the answers to probes come from; unknown communicators are answered with "not entered". Thread-safe.
  virtual void publish(std::uint64_t communicator, std::shared_ptr<const CallHistory> history) = 0;
  virtual void unpublish(std::uint64_t communicator) = 0;
  // Says that this rank has left a communicator, after its lanes, and what it had called. A Notice{differed} follows if
  // a rank that left before had made other calls, else a Notice{agreed}: so of two ranks that made different calls the
  // one that leaves later hears of it. (Not if the hub died in between.) Before a Notice{differed}, unless it is of a
  // lane, a Notice{poisoned} follows on every rank. Thread-safe.
  virtual void farewell(Farewell farewell) = 0;
};

}  // namespace tutti::internal
