// Which algorithm a call uses when the caller does not say: a table of rules over (collective, ranks, hosts, bytes,
// order), things that all ranks of a communicator know alike. The table itself is rank 0's (Settings::table).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "schedule/cost.h"
#include "tutti/types.h"
#include "types/collective.h"

namespace tutti::internal {

inline constexpr int kAnyRanks = std::numeric_limits<int>::max();
inline constexpr std::size_t kAnyBytes = std::numeric_limits<std::size_t>::max();

enum class HostCount : std::uint8_t { any, one, several, shared };

// A rule holds when every bound does; the first that holds decides.
struct Rule {
  Collective collective = Collective::all_reduce;
  int max_ranks = kAnyRanks;
  HostCount hosts = HostCount::any;   // one: all ranks share memory; shared: several hosts, fewer than ranks
  std::size_t max_bytes = kAnyBytes;  // of the whole message
  Order order = Order::canonical;     // any: holds for those calls alone that allow any order
  Algorithm algorithm = Algorithm::automatic;
  std::size_t chunk_bytes = 0;  // of a piece that a pipelining algorithm cuts the message into; 0: its default

  bool is_for(int ranks, int host_count) const {
    if (ranks > max_ranks) return false;
    switch (hosts) {
      case HostCount::any: return true;
      case HostCount::one: return host_count <= 1;
      case HostCount::several: return host_count > 1;
      case HostCount::shared: return host_count > 1 && host_count < ranks;
    }
    return false;
  }
  bool holds(std::size_t bytes, Order allowed) const {
    return bytes <= max_bytes && (order == Order::canonical || allowed == Order::any);
  }
  friend bool operator==(const Rule&, const Rule&) = default;
};

// A value. Its rules keep the canonical order, but for calls that allow any: no table changes the bits of the others.
struct ChoiceTable {
  std::vector<Rule> rules;
  CostModel model;  // what they were made from; nothing at run time depends on it

  static const ChoiceTable& built_in();
  friend bool operator==(const ChoiceTable&, const ChoiceTable&) = default;
};

// The rules that concern one communicator. Where none of the table's holds, the built-in table's do.
class Chooser {
 public:
  // crowded: the ranks share processors, and no device has a part in their calls.
  Chooser(const ChoiceTable& table, int ranks, int hosts, bool crowded = false);

  // nullptr: there is no rule for the collective. The pointer is valid as long as the chooser. unequal_rows: of a call
  // whose rows have different lengths; rules with algorithms that do not take them are passed over.
  const Rule* rule_for(Collective collective, std::size_t bytes, Order allowed, bool unequal_rows = false) const;

  // automatic where there is no rule.
  Algorithm choose(Collective collective, std::size_t bytes, Order allowed, bool unequal_rows = false) const;

  // Pieces that a pipelining algorithm, chosen or asked for, cuts a message of `bytes` into.
  int chunks(Collective collective, Algorithm algorithm, std::size_t bytes, Order allowed,
             bool unequal_rows = false) const;

 private:
  int ranks_, hosts_;
  bool crowded_;
  std::array<std::vector<Rule>, kCollectiveCount> rules_;  // by collective
};

// Whether a rank copies what it sends to several others once, to where those of its host can read it
// (Message::copies_once), if it lies in ordinary memory; see copies_shared(). `bytes`: of the whole message; `here`:
// ranks of its host. crowded: they share processors, which counts for all_reduce alone.
bool copies_once(Collective collective, std::size_t bytes, int ranks, std::ptrdiff_t here, bool crowded);

// Where results are copied once, whether inputs are copied, too (Message::copies_inputs).
bool copies_inputs(std::size_t bytes, bool crowded);

// Likewise, whether a call ends before the copies have been read (Cut::leaves_copies).
bool leaves_copies(Collective collective, std::size_t bytes, bool crowded);

// Likewise, whether memory that the others can read where it lies is copied nevertheless (Plan::copies_shared): a call
// that lends the caller's memory waits for its readers.
bool copies_shared(Collective collective, std::size_t bytes, bool crowded);

// A call's message, as all ranks know it.
struct WholeMessage {
  std::size_t bytes = 0;
  int ranks = 1, hosts = 1;
  bool unequal_rows = false;
  bool crowded = false;  // as of Chooser
};

// How many of its `chunks` pieces a rank may send before it has received as many (Message::ahead); 0: all.
int pieces_ahead(Collective collective, const WholeMessage& message, int chunks);

// Of the whole message. All ranks must cut alike.
std::size_t default_chunk_bytes(Collective collective, Algorithm algorithm, const WholeMessage& message);
inline constexpr int kMaxChunks = 128;
int chunks_of(std::size_t bytes, std::size_t chunk_bytes);

}  // namespace tutti::internal
