// Writes schedules. Waits are inserted where memory is about to be used while it is lent, and receives are posted as
// early as their memory allows, so an algorithm only says what moves; the verifier proves afterwards, on its own, that
// all of it is right.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "schedule/schedule.h"

namespace tutti::internal {

// Throws Error{invalid_argument} for more rows of scratch than have numbers.
void check_scratch_rows(std::int64_t rows);

class Builder {
 public:
  Builder(int rank, int slices, int chunks = 1, bool exact_slices = false);

  int new_scratch_row() { return new_scratch_rows(1); }
  // Side by side; returns the first. Throws Error{invalid_argument} where there would be more than can be numbered.
  int new_scratch_rows(int count);

  void send(int peer, const Extent& from);
  void receive(int peer, const Extent& to);
  // Waits until what has been posted for `region` is there.
  void await(Region region) { before_read(region); }

  // A source for reduce(): local memory, or the next message from `peer` carrying `shape`'s slice and chunk.
  static Source local(Region region);
  static Source message(int peer, Region shape, bool partial);

  // Stores the combination of `sources` (their joins already set) into `to`.
  void reduce(std::vector<Source> sources, Region to, bool finish = false);
  void copy(Region from, Region to, bool finish = false) { reduce({local(from)}, to, finish); }

  Schedule build() &&;

 private:
  struct Lent {
    int peer;
    std::uint32_t message;  // the count to wait for
  };
  Step message_step(StepKind kind, int peer, const Extent& lent);
  void before_read(const Region& region);
  void before_write(const Region& region);
  void wait(StepKind kind, const Lent& lent);
  void post_early();
  bool may_pass(const Step& receive, const Step& step) const;
  bool overlap(const Step& message, const Region& region) const;
  bool overlap(const Step& message, const Step& other) const;
  static Region memory_of(Region region);  // the key under which aliasing regions fall together

  Schedule schedule_;
  std::map<Region, std::vector<Lent>> sending_;                 // lent to be read
  std::map<Region, Lent> receiving_;                            // lent to be written
  std::map<int, std::uint32_t> sent_, received_;                // messages sent, and receives posted, by peer
  std::map<int, std::uint32_t> taken_;                          // messages received or reduced, by peer
  std::map<int, std::uint32_t> sent_waited_, received_waited_;  // how far waits have been written
};

// joins for the canonical tree over consecutive nodes that cover [0, leaves): node i covers [bounds[i], bounds[i + 1]).
// Every node must be a node of T or a single leaf.
std::vector<std::uint8_t> canonical_joins(const std::vector<int>& bounds);

}  // namespace tutti::internal
