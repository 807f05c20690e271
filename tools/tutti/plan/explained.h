// What tutti plan --explain --topology tells of a call, before it is told.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "plan/on_machine.h"
#include "plan/placed.h"
#include "selection/choose.h"

namespace tutti::internal::tools {

// The question and the placed ranks must outlive it.
struct Explained {
  const Question& question;
  const PlacedRanks& placed;
  internal::Chooser chooser;
  DistanceCosts costs;
  std::vector<MachineCandidate> all;
  // Of the ranks' shared memory, whatever the call: bytes of a ring, and lanes if each rank sends to each other one.
  std::size_t ring_bytes, lanes;

  Explained(const Question& asked, const PlacedRanks& ranks, const internal::ChoiceTable& table,
            const std::string& name);

  int ranks() const { return question.layout.ranks(); }
  Algorithm chosen() const { return chooser.choose(question.collective, question.bytes, question.order); }
  bool is_chosen(const MachineCandidate& each) const {
    return each.by.empty() && each.candidate.entry->algorithm == chosen();
  }
  // nullptr where none of its kind has a price.
  const MachineCandidate* table_choice() const;
  const MachineCandidate* cheapest_today() const;  // the table's choice, where nothing is cheaper than that
  const MachineCandidate* cheapest() const;        // with groups; or today's

  std::size_t ring_bytes_of(const MachineCandidate& each) const {
    return static_cast<std::size_t>(each.traffic.rings) * ring_bytes;
  }
  std::array<int, kDistances> pairs() const;  // of ranks, by distance
};

}  // namespace tutti::internal::tools
