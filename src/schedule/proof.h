// What the verifier is asked, and what it answers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tutti/types.h"

namespace tutti::internal {

// What is asked of the schedules.
struct Goal {
  Collective collective = Collective::all_reduce;
  int root = 0;
  Order order = Order::canonical;
  // Of a collective that exchanges rows: the outputs are the memory of the inputs. Of all others both are always
  // proven.
  bool in_place = false;
};

// What whoever runs a schedule may do in the pass of a reduce, instead of when its turn comes:
//   - a send that stands behind it: the pass stores the message where the peer wants it too, and the send is left out;
//   - a reduce that finishes what it leaves in scratch, behind nothing but waits that are over when the pass begins:
//     the pass stores what that one would, and all between is left out.
// Each time, and for each peer by itself, either may happen.
struct Shortcut {
  std::uint32_t reduce = 0;  // steps of one schedule
  std::uint32_t other = 0;   // the send or the reduce
};

// How one slice's result is combined, in postfix: leaf numbers >= 0, kCombine for "replace the two topmost by a op b".
inline constexpr int kCombine = -1;
using Expression = std::vector<int>;

struct Proof {
  bool holds = false;
  std::string reason;      // a sentence for a person when it does not hold: rank, step, what
  bool canonical = false;  // every slice is combined exactly as T says
  // The order found, by slice (reductions only, but for scans: of those it is the canonical one, or not). Of chunk 0;
  // all chunks were found equal.
  std::vector<Expression> slices;
  int rounds = 0;              // longest chain of messages
  std::uint64_t messages = 0;  // over all ranks
};

}  // namespace tutti::internal
