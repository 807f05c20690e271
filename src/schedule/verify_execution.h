// One maximal execution of all ranks, with nothing buffered, in symbols.
//
// Matching is by order alone, so every interleaving sends the same messages and one execution decides deadlock and
// results for all, provided that no two accesses to one memory cell race. Races are found on the way by vector clocks:
// each access lasts from a start to an end, and the end of the earlier must happen before the start of the later.
//
// Messages order events; waiting for a loan to return does not, beyond the end of that one loan: a transport that
// buffers returns it before the peer has come that far. So the proof holds for transports that buffer and for those
// that do not.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "schedule/claimed_messages.h"
#include "schedule/layout.h"
#include "schedule/proof.h"
#include "schedule/schedule.h"
#include "schedule/verify_expressions.h"
#include "types/collective.h"

namespace tutti::internal {

class Execution {
 public:
  // Requires check_form() and check_shortcuts() to have passed.
  Execution(std::span<const Schedule> schedules, const Layout& layout, const Goal& goal,
            std::span<const std::vector<Shortcut>> shortcuts);

  // Runs all ranks to their ends. Throws Refutation.
  void run();

  // After run().
  std::optional<int> output(int rank, int slice, int chunk);  // the expression that lies there, if anything was written
  bool happened_after_all_starts(int rank) const;             // did rank's end?
  Expressions& expressions() { return expressions_; }
  int rounds() const;  // the longest chain of messages
  std::uint64_t messages() const { return messages_; }

 private:
  using Clock = std::vector<int>;  // by rank: how many of its steps have happened before
  static constexpr int kNotYet = std::numeric_limits<int>::max();

  struct Value {
    int expression;
    std::uint32_t slice;
  };
  struct Message {
    Clock clock;  // what those knew who have posted it so far; released once it is waited for
    int rounds = 0;
    int send_step = kNotYet, receive_step = kNotYet;  // the latter stays so where a reduce takes it
    std::vector<int> values;                          // by row
    std::size_t number = 0;                           // set where it is posted
    bool taken = false;
    // After this step of the sender the loan of what is sent is over; after this one of the receiver those of both
    // ends.
    int sender_done = kNotYet, receiver_done = kNotYet;
  };
  struct Channel {  // from one rank to another
    std::deque<Message> messages;
    ClaimedMessages claimed;
    std::size_t sent = 0, taken = 0;                // the first so many of them
    std::vector<Message*> posted;                   // those that receive steps take
    std::size_t send_waits = 0, receive_waits = 0;  // the first so many of messages and of posted have been waited for
    Message& at(std::size_t number) {
      while (messages.size() <= number) messages.emplace_back();
      return messages[number];
    }
  };
  struct Access {
    Region region;
    int rank;  // whose step it is
    int step;
    bool write = false;
    const Message* message = nullptr;  // of a loan, and to whom
    int peer = kLocal;
  };
  static bool ended_before(const Access& access, const Clock& start);
  struct Cell {  // where input row 0 and output share memory, they share one
    std::optional<Value> value;
    std::optional<Access> written;
    std::vector<Access> read;  // since then
  };
  struct Early {  // what a shortcut may have done before the step's turn
    Clock clock;  // of the reduce that may have done it: known when its pass ends; of a send of its source, begins
    int reduce;
    int value;
  };
  struct Rank {
    int next = 0;
    Clock clock;
    int rounds = 0;
    std::vector<Message*> arrived;  // of the reduce it stands at: its sources so far, nullptr for a local one
    std::vector<Cell> inputs, outputs, scratch;  // outputs: where they are not the memory of inputs
    std::map<int, Early> early;                  // by step
    bool queued = false;
  };

  bool advance(int rank);  // one step; false where it must wait
  void send(int rank, const Step& step);
  void receive(int rank, const Step& step);
  bool reduce(int rank, const Step& step);
  bool wait_send(int rank, const Step& step);
  bool wait_receive(int rank, const Step& step);
  void end(int rank);

  // In verify_shortcuts.cc, of the step at hand. value: what it makes, sends or finishes.
  void note_shortcuts(int rank, int value);
  Clock clock_of_send(int rank, int value);  // what the peer may rely on once it has the message
  void check_finish(int rank, const Step& step, int value);

  bool gather(int rank, const Step& step);  // a reduce's messages, as far as they have been sent
  int take(int rank, const Source& source, const Message& message) const;
  void transfer(int from, int to, Message& message);
  void check_rows(int from, int to, const Message& message) const;  // one end's are the other's
  void give_back(int from, int to, Message& message);
  int load(const Access& access);
  void store(const Access& access, int expression, const Clock& start);
  void check_order(const Access& earlier, const Access& later, const Clock& later_start) const;
  [[noreturn]] void race(const Access& earlier, const Access& later) const;
  [[noreturn]] void fail(int rank, int step, const std::string& what) const;
  std::string waits_for(int rank, int& peer);
  [[noreturn]] void deadlock();

  Cell& cell(int rank, const Region& region);
  bool is_apart() const { return holds_.traits.exchanges() && !goal_.in_place; }
  Channel& channel(int from, int to) { return channels_[from * ranks_.size() + to]; }
  void wake(int rank);

  std::span<const Schedule> schedules_;
  const Layout& layout_;
  const Goal& goal_;
  const Distribution holds_;
  std::span<const std::vector<Shortcut>> shortcuts_;
  std::vector<Rank> ranks_;
  std::vector<Channel> channels_;
  std::deque<int> ready_;
  Expressions expressions_;
  std::uint64_t messages_ = 0;
};

}  // namespace tutti::internal
