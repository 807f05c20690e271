#include "plan/placed.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <tuple>

#include "command.h"
#include "tutti/error.h"

namespace tutti::internal::tools {
namespace {

using topology::Machine;
using topology::Position;
using Key = std::tuple<int, int>;  // equal for ranks of one group

bool share_cache(const Position& a, const Position& b) {
  return a.cache >= 0 && a.cache == b.cache && a.cache_level == b.cache_level;
}

Grouping grouping(const std::string& by, const std::vector<Position>& positions,
                  const std::function<Key(int rank, const Position&)>& key) {
  Grouping grouping{by, {}, 0};
  std::map<Key, int> numbers;
  for (std::size_t rank = 0; rank < positions.size(); ++rank) {
    const Key own = key(static_cast<int>(rank), positions[rank]);
    const auto [found, is_new] = numbers.try_emplace(own, grouping.count);
    if (is_new) ++grouping.count;
    grouping.group.push_back(found->second);
  }
  return grouping;
}

}  // namespace

Machine read_machine(const std::string& file_or_description) try {
  std::error_code error;
  const auto status = std::filesystem::status(file_or_description, error);
  if (std::filesystem::is_regular_file(status)) {
    std::ifstream file(file_or_description);
    std::stringstream text;
    text << file.rdbuf();
    if (!file) throw UsageError(fmt::format("cannot read {}", file_or_description));
    return Machine::recorded(text.str());
  }
  if (std::filesystem::exists(status)) throw UsageError(fmt::format("{} is not a file", file_or_description));
  if (file_or_description.find(':') != std::string::npos) return Machine::synthetic(file_or_description);
  throw UsageError(fmt::format("there is no file {}; lstopo --of xml writes one", file_or_description));
} catch (const Error& error) {
  throw UsageError(fmt::format(
      "{}: {}. It takes a file that lstopo --of xml has written, or a description as of lstopo -i: \"package:2 l3:4 "
      "core:8 pu:1\"",
      file_or_description, error.what()));
}

PlacedRanks::PlacedRanks(const Machine& machine, std::string name, int ranks) : name_(std::move(name)) {
  const topology::Processors all = machine.processors();
  cores_ = static_cast<int>(machine.cores(all).size());
  processors_ = static_cast<int>(all.size());
  const auto places = machine.place(all, ranks);
  if (places.empty())
    throw UsageError(fmt::format(
        "{} ranks are more than the {} processors of {}. tutti run then binds none of them: they take turns, and none "
        "has a place. Leave out --topology, and give a --table with the cores of the machine, to see what turns cost",
        ranks, processors_, name_));
  for (const topology::Processors& place : places) positions_.push_back(machine.position_of(place));
}

Distance PlacedRanks::between(int a, int b) const {
  const Position &one = positions_[static_cast<std::size_t>(a)], &other = positions_[static_cast<std::size_t>(b)];
  if (a == b || share_cache(one, other)) return Distance::cache;
  if (one.package >= 0 || other.package >= 0)
    return one.package == other.package ? Distance::package : Distance::machine;
  return one.node >= 0 && one.node == other.node ? Distance::package : Distance::machine;
}

std::vector<Grouping> PlacedRanks::groupings() const {
  const auto alone_unless = [](int rank, int number, int level = 0) {
    return number >= 0 ? Key{level, number} : Key{-1, rank};
  };
  int level = 0;
  for (const Position& position : positions_) level = std::max(level, position.cache_level);
  std::vector<Grouping> all;
  const auto add = [&](const Grouping& each) {
    if (each.count < 2 || each.count == static_cast<int>(positions_.size())) return;
    if (all.empty() || all.back().group != each.group) all.push_back(each);
  };
  add(grouping(fmt::format("L{} cache", level), positions_,
               [&](int rank, const Position& at) { return alone_unless(rank, at.cache, at.cache_level); }));
  add(grouping("memory node", positions_, [&](int rank, const Position& at) { return alone_unless(rank, at.node); }));
  add(grouping("package", positions_, [&](int rank, const Position& at) { return alone_unless(rank, at.package); }));
  return all;
}

std::vector<Part> parts_of(const PlacedRanks& placed) {
  const auto& positions = placed.positions();
  bool some_share = false;
  for (int rank = 1; rank < static_cast<int>(positions.size()); ++rank)
    some_share |= placed.between(rank - 1, rank) == Distance::cache;
  const auto key = [&](const Position& at) {
    return std::tuple(at.package, at.node, some_share ? at.cache_level : 0, some_share ? at.cache : 0);
  };
  std::vector<Part> parts;
  for (int rank = 0; rank < static_cast<int>(positions.size()); ++rank) {
    const Position& at = positions[static_cast<std::size_t>(rank)];
    auto found = std::ranges::find_if(parts, [&](const Part& part) { return key(part.at) == key(at); });
    if (found == parts.end()) found = parts.insert(parts.end(), {at, {}});
    found->ranks.push_back(rank);
  }
  for (Part& part : parts)
    if (!some_share && part.ranks.size() > 1) part.at.cache_level = 0;
  return parts;
}

std::string ranges(const std::vector<int>& ascending) {
  std::string text;
  for (std::size_t i = 0; i < ascending.size();) {
    std::size_t end = i + 1;
    while (end < ascending.size() && ascending[end] == ascending[end - 1] + 1) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ",", ascending[i]);
    if (end > i + 1) text += fmt::format("-{}", ascending[end - 1]);
    i = end;
  }
  return text;
}

}  // namespace tutti::internal::tools
