// What the interpreter computes with: numbers that show who was combined with whom, and one rank's memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "schedule/layout.h"
#include "schedule/leaves.h"
#include "schedule/partition.h"
#include "schedule/schedule.h"
#include "schedule/verify.h"
#include "types/collective.h"

namespace tutti::internal {

// Thrown inside the interpreter; interpret() turns it into Run::error_text.
struct RunError {
  std::string what;
};

// SplitMix64 (Steele, Lea, Flood 2014): the hash of values and, over a counter, the scheduler's dice.
std::uint64_t splitmix64(std::uint64_t x);

struct Element {
  std::uint64_t value = 0;
  bool written = false;
};
using Elements = std::span<Element>;
std::uint64_t read(const Element& element);  // throws RunError where nothing was written

class Arithmetic {
 public:
  Arithmetic(const Layout& layout, const Goal& goal)
      : layout_(layout), goal_(goal), holds_(goal.collective, layout.ranks(), goal.root) {}

  bool combines() const { return holds_.traits.combines(); }  // leaves; otherwise ranks' data moves
  std::uint64_t input(int leaf, std::size_t element) const { return splitmix64(splitmix64(leaf) ^ element); }
  std::uint64_t combine(std::uint64_t below, std::uint64_t top) const;
  std::uint64_t finish(std::uint64_t value) const { return splitmix64(value ^ 0xf1); }
  std::uint64_t expected(int rank, std::size_t slice, std::size_t element) const;

 private:
  std::uint64_t tree(int lo, int hi, std::size_t element) const;

  const Layout& layout_;
  const Goal& goal_;
  const Distribution holds_;
};

class RankMemory {
 public:
  // The rank's inputs are written, all else is not.
  RankMemory(const Schedule& schedule, const Layout& layout, const Goal& goal, std::size_t count, bool in_place);

  Elements at(const Region& region);  // throws RunError
  // Of a send or receive, whose rows must lie side by side: all elements of its message. Throws RunError.
  std::vector<Element*> lent(const Schedule& schedule, const Step& step);
  std::size_t length(const Region& region) const;
  const Partition& partition() const { return partition_; }

 private:
  Partition partition_;
  std::size_t begin_of(const Region& region) const;  // in the buffer

  const Distribution holds_;
  int rank_;
  std::size_t slices_;
  bool in_place_;
  std::size_t row_stride_ = 0;                          // elements from row to row of the message
  std::size_t scratch_stride_ = 0;                      // from chunk to chunk
  std::vector<std::vector<Element>> inputs_, scratch_;  // by row
  std::vector<Element> output_;                         // unused in place
};

}  // namespace tutti::internal
