#include "control/farewells.h"

namespace tutti::internal {

std::optional<Farewell> Farewells::compare(const Farewell& farewell) {
  const auto entry = entries_.try_emplace(farewell.communicator, Entry{farewell}).first;
  const Farewell first = entry->second.first;
  if (++entry->second.left >= farewell.ranks) entries_.erase(entry);
  return first.account == farewell.account ? std::nullopt : std::optional(first);
}

std::vector<Farewell> Farewells::first() const {
  std::vector<Farewell> list;
  for (const auto& [communicator, entry] : entries_) list.push_back(entry.first);
  return list;
}

}  // namespace tutti::internal
