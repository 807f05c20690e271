// The limit of this machine for a collective: the same work by plain loops, with no library, no protocol and nothing to
// fail. `tutti bench` prints it beside every figure, measured between that row and the one before.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "topology/processors.h"
#include "tutti/types.h"

namespace tutti::internal::tools {

// The loops of one yardstick. Made before its processes are forked, so that they share what it holds.
class LimitLoops {
 public:
  virtual ~LimitLoops() = default;

  virtual int processes() const = 0;

  // Whether `bytes` can be measured: a message of no bytes has no limit, and a barrier has no bytes.
  virtual bool measures(std::size_t bytes) const = 0;

  // How many calls of `bytes` make a round long enough to be timed.
  virtual std::size_t calls_for(std::size_t bytes) const = 0;

  // Called in process `me` of [0, processes()), by all of them together: `calls` of `bytes` back to back. Returns the
  // mean microseconds of a call in the slowest process.
  virtual double round(int me, std::size_t bytes, std::size_t calls) = 0;
};

// Calls that make a round of `ranks` ranks long enough to be timed, where a call moves `bytes` over all of them.
std::size_t calls_to_time(double bytes, int ranks);

// `ranks` processes over one shared mapping. all_reduce and reduce_scatter: each reads its slice of the n inputs, adds
// them as float32 along the canonical tree and stores the sums into the outputs; all_gather and broadcast: each copies
// what it lacks; or each of two half of a broadcast, if that is quicker. One flag line a rank, waited for before and
// after. A barrier is the wait alone.
std::unique_ptr<LimitLoops> shm_loops(Collective collective, int ranks, std::size_t max_bytes);

// Of ranks that cannot reach each other's buffers: the same through pieces in shared memory. A barrier and the scans
// have none.
std::unique_ptr<LimitLoops> own_loops(Collective collective, int ranks, std::size_t max_bytes);

// Of the same ranks, for a collective that combines nothing: each reads the others' private memory. Or, if that is
// quicker and of two ranks one only sends: the other one reads half of each message, and it writes the other half to
// that one's private memory. A round takes infinitely long if the system does not allow it.
std::unique_ptr<LimitLoops> read_loops(Collective collective, int ranks, std::size_t max_bytes);
// Whether these loops have halves.
bool copies_halves(Collective collective, int ranks);

// The quicker of two, of as many processes each. Where a round of the second takes more than twice as long as one of
// the first, later rounds of that size are of the first alone.
std::unique_ptr<LimitLoops> quicker_of(std::unique_ptr<LimitLoops> first, std::unique_ptr<LimitLoops> second);

// Two processes over one TCP connection on the loopback, polling: both send and receive what a rank of two must.
// Nothing is reduced.
std::unique_ptr<LimitLoops> tcp_loops(Collective collective, std::size_t max_bytes);

// Processes that sleep until they are asked for a size. They hold the loops; process i runs on places[i].
// They end with this object, or with the process that made it, however it ends.
class Limit {
 public:
  // Forks: call it before the first thread starts. calls: of a round; 0: as many as the loops propose, or
  // fewer where these would take long; with round_us, as many as take so long. Throws Error{system}.
  Limit(std::unique_ptr<LimitLoops> loops, std::vector<topology::Processors> places, int rounds, std::size_t calls = 0,
        double round_us = 0);
  ~Limit();
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;

  // Microseconds of one call: median of the rounds. Blocks asleep meanwhile. Nothing where the loops do not measure
  // `bytes`.
  std::optional<double> measure_us(std::size_t bytes);

 private:
  struct Task {
    std::size_t bytes, calls;
    int rounds;
  };
  std::size_t calls_a_round(std::size_t bytes);
  double ask(const Task& task);
  void serve(int me, int orders) const;

  std::unique_ptr<LimitLoops> loops_;
  std::vector<topology::Processors> places_;
  int rounds_;
  std::size_t calls_;
  double round_us_;
  int answers_[2] = {-1, -1};  // pipe from process 0
  std::vector<int> orders_;    // to each process; closing them ends it
  std::vector<pid_t> children_;
};

// Microseconds of a clock that all processes of a host share.
double now_us();

// The middle one of several figures: the upper of the two where their number is even.
double median(std::vector<double> figures);

}  // namespace tutti::internal::tools
