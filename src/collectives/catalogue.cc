#include "collectives/catalogue.h"

#include <algorithm>
#include <array>

#include "collectives/algorithms.h"
#include "collectives/requirements.h"
#include "schedule/apart.h"
#include "tutti/error.h"
#include "types/collective.h"

namespace tutti::internal {

Schedule AlgorithmEntry::schedule(int rank, const Layout& layout, const Message& message) const {
  const std::string name = name_of(*this);
  require_valid(name, rank, layout, message);
  if (!several_leaves) require_one_leaf_each(name, layout);
  const Schedule schedule = function(rank, layout, message);
  return message.in_place && traits_of(collective).exchanges() ? with_input_apart(schedule) : schedule;
}

std::span<const AlgorithmEntry> catalogue() {
  static const std::array entries{
#define TUTTI_ALGORITHM(collective, name)                                                        \
  AlgorithmEntry{algorithms::collective::name##_claims, Collective::collective, Algorithm::name, \
                 algorithms::collective::name},
#include "tutti/algorithms.def"
  };
  return entries;
}

const AlgorithmEntry* find_algorithm(Collective collective, Algorithm algorithm) {
  const auto found = std::ranges::find_if(catalogue(), [&](const AlgorithmEntry& entry) {
    return entry.collective == collective && entry.algorithm == algorithm;
  });
  return found == catalogue().end() ? nullptr : &*found;
}

void require_unequal_rows(const AlgorithmEntry& entry) {
  if (entry.joins_rows)
    throw Error(ErrorCode::invalid_argument,
                name_of(entry) + ": sends several rows in one message, so it takes rows of one length only");
}

std::string name_of(const AlgorithmEntry& entry) {
  return std::string(to_string(entry.collective)) + " " + std::string(to_string(entry.algorithm));
}

std::vector<Schedule> build_all(const AlgorithmEntry& entry, const Layout& layout, const Message& message) {
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < layout.ranks(); ++rank) schedules.push_back(entry.schedule(rank, layout, message));
  return schedules;
}

}  // namespace tutti::internal
