// tutti plan --topology: where the ranks of one host are on a machine that was recorded or is made up, and how far from
// each other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/machine.h"

namespace tutti::internal::tools {

// How far two ranks are from each other, the nearest first.
enum class Distance : std::uint8_t {
  cache,    // they share a cache
  package,  // they share a package; a memory node, where the topology has no packages
  machine,  // neither
};
inline constexpr int kDistances = 3;

// A file that `lstopo --of xml` has written; or, where there is no file of that name, a description as `lstopo -i`
// takes. Throws UsageError that says what is wrong.
topology::Machine read_machine(const std::string& file_or_description);

// Ranks by something that some of them share. Numbered in the order of their first ranks, as hosts are.
struct Grouping {
  std::string by;          // "L3 cache", "memory node", "package"
  std::vector<int> group;  // by rank
  int count = 0;
};

// A value. Ranks lie as Machine::place() says.
class PlacedRanks {
 public:
  // Throws UsageError where they outnumber the machine's processors. name: of the machine, for people.
  PlacedRanks(const topology::Machine& machine, std::string name, int ranks);

  const std::string& name() const { return name_; }
  int cores() const { return cores_; }
  int processors() const { return processors_; }
  const std::vector<topology::Position>& positions() const { return positions_; }  // by rank

  Distance between(int a, int b) const;
  // By cache, by memory node, by package; without what tells no ranks apart, gathers none, or gathers the same ranks
  // as the one before.
  std::vector<Grouping> groupings() const;

 private:
  std::string name_;
  int cores_ = 0, processors_ = 0;
  std::vector<topology::Position> positions_;
};

// Ranks that share all of package, memory node and largest cache. Where no two of all share a cache, caches part
// nobody, and a part of several ranks has none.
struct Part {
  topology::Position at;
  std::vector<int> ranks;
};
std::vector<Part> parts_of(const PlacedRanks& placed);

// "0-7,9"
std::string ranges(const std::vector<int>& ascending);

}  // namespace tutti::internal::tools
