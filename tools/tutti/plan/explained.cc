#include "plan/explained.h"

#include <algorithm>

#include "transport/shm/ring_bytes.h"

namespace tutti::internal::tools {
namespace {

// nullptr where there is none with a price.
template <class Is>
const MachineCandidate* first(const std::vector<MachineCandidate>& all, const Is& is) {
  const auto found = std::ranges::find_if(all, [&](const auto& each) { return each.candidate.cost && is(each); });
  return found == all.end() ? nullptr : &*found;
}

// The first where they cost the same.
const MachineCandidate* cheaper(const MachineCandidate* one, const MachineCandidate* other) {
  return one != nullptr && one->candidate.cost->us <= other->candidate.cost->us ? one : other;
}

}  // namespace

Explained::Explained(const Question& asked, const PlacedRanks& on, const internal::ChoiceTable& table,
                     const std::string& name)
    : question(asked),
      placed(on),
      chooser(table, asked.layout.ranks(), 1),
      costs(distance_costs(table, name)),
      all(candidates_on(on, asked, chooser, costs)) {
  const auto count = static_cast<std::size_t>(ranks());
  ring_bytes = internal::shm::ring_bytes_for(count, false).both_ways;
  lanes = count * (count - 1);
}

const MachineCandidate* Explained::table_choice() const {
  return first(all, [&](const MachineCandidate& each) { return is_chosen(each); });
}

const MachineCandidate* Explained::cheapest_today() const {
  return cheaper(table_choice(), first(all, [](const MachineCandidate& each) { return each.by.empty(); }));
}

const MachineCandidate* Explained::cheapest() const {
  return cheaper(cheapest_today(), first(all, [](const MachineCandidate&) { return true; }));
}

std::array<int, kDistances> Explained::pairs() const {
  std::array<int, kDistances> count{};
  for (int a = 0; a < ranks(); ++a)
    for (int b = 0; b < a; ++b) ++count[static_cast<std::size_t>(placed.between(a, b))];
  return count;
}

}  // namespace tutti::internal::tools
