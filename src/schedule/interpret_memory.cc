#include "schedule/interpret_memory.h"

#include <algorithm>

namespace tutti::internal {

std::uint64_t splitmix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

std::uint64_t read(const Element& element) {
  if (!element.written) throw RunError{"memory is read that was never written"};
  return element.value;
}

std::uint64_t Arithmetic::combine(std::uint64_t below, std::uint64_t top) const {
  return goal_.order == Order::canonical ? splitmix64(splitmix64(below) + 3 * top) : below + top;
}

std::uint64_t Arithmetic::tree(int lo, int hi, std::size_t element) const {
  if (hi - lo == 1) return input(lo, element);
  int left = 1;
  while (left < hi - lo - left) left *= 2;
  return combine(tree(lo, lo + left, element), tree(lo + left, hi, element));
}

std::uint64_t Arithmetic::expected(int rank, std::size_t slice, std::size_t element) const {
  if (combines()) return finish(tree(0, combined_leaves(layout_, goal_.collective, rank), element));
  return input(holds_.origin(static_cast<int>(slice)), element);
}

RankMemory::RankMemory(const Schedule& schedule, const Layout& layout, const Goal& goal, std::size_t count,
                       bool in_place)
    : holds_(goal.collective, layout.ranks(), goal.root),
      rank_(schedule.rank),
      slices_(schedule.slices),
      in_place_(in_place) {
  partition_.count = holds_.traits.has_bytes() ? count : 0;
  partition_.slices = holds_.traits.has_rows() ? layout.ranks() : schedule.slices;
  partition_.chunks = schedule.chunks;
  for (std::size_t slice = 0; slice < partition_.slices; ++slice) {
    row_stride_ = std::max(row_stride_, partition_.slice(slice).size());
    for (std::size_t chunk = 0; chunk < partition_.chunks; ++chunk)
      scratch_stride_ = std::max(scratch_stride_, partition_.chunk(slice, chunk).size());
  }
  scratch_.assign(schedule.scratch_rows, std::vector<Element>(scratch_stride_ * partition_.chunks));
  const std::size_t size = holds_.traits.has_rows() ? row_stride_ * partition_.slices : partition_.count;
  output_.resize(size);

  const Arithmetic arithmetic(layout, goal);
  const int rows = arithmetic.combines() ? layout.leaves_of(schedule.rank) : 1;
  const int first = arithmetic.combines() ? layout.first_leaf[schedule.rank] : schedule.rank;
  inputs_.assign(std::max(rows, 1), std::vector<Element>(size));
  for (int slice = 0; holds_.traits.has_bytes() && slice < schedule.slices; ++slice) {
    if (!holds_.gives(rank_, slice)) continue;
    const ElementRange range = partition_.slice(static_cast<std::size_t>(slice));
    const std::size_t begin = begin_of({.slice = static_cast<std::uint32_t>(slice)});
    for (int row = 0; row < rows; ++row)
      for (std::size_t i = 0; i < range.size(); ++i)
        inputs_[row][begin + i] = {arithmetic.input(first + row, range.begin + i), true};
  }
}

// Rows lie where in place they do, so that all that share memory then share it here.
std::size_t RankMemory::begin_of(const Region& region) const {
  const std::size_t begin = partition_.chunk(region.slice, region.chunk).begin;
  if (!holds_.traits.has_rows()) return begin;
  const int slice = static_cast<int>(region.slice);
  const int row =
      region.space == Space::output ? holds_.output_position(rank_, slice) : holds_.input_position(rank_, slice);
  return static_cast<std::size_t>(row) * row_stride_ + begin - partition_.slice(region.slice).begin;
}

std::size_t RankMemory::length(const Region& region) const {
  if (region.slice >= slices_ || region.chunk >= partition_.chunks) throw RunError{"a region that does not exist"};
  return partition_.chunk(region.slice, region.chunk).size();
}

Elements RankMemory::at(const Region& region) {
  const std::size_t size = length(region);
  const std::size_t rows = region.space == Space::output  ? 1
                           : region.space == Space::input ? inputs_.size()
                                                          : scratch_.size();
  if (region.row >= rows) throw RunError{"a row that does not exist"};
  if (is_scratch(region.space)) return Elements(scratch_[region.row]).subspan(region.chunk * scratch_stride_, size);
  const int slice = static_cast<int>(region.slice);
  const bool is_held = region.space == Space::output ? holds_.gets(rank_, slice) : holds_.gives(rank_, slice);
  if (holds_.traits.has_bytes() && !is_held) throw RunError{"a part of a buffer that the rank does not hold"};
  std::vector<Element>& whole = region.space == Space::output && !in_place_ ? output_ : inputs_[region.row];
  return Elements(whole).subspan(begin_of(region), size);
}

// Rows are as long here as the longest, so that one row lies a stride behind the other.
std::vector<Element*> RankMemory::lent(const Schedule& schedule, const Step& step) {
  std::vector<Element*> elements;
  if (std::size_t{step.first_part} + step.part_count > schedule.further_slices.size() && step.part_count > 0)
    throw RunError{"rows that no table has"};
  for (std::size_t i = 0; i < Schedule::rows_of(step); ++i) {
    const Region row = schedule.row_of(step, i);
    for (Element& element : at(row)) elements.push_back(&element);
    if (!is_scratch(row.space) && i > 0 && begin_of(row) != begin_of(step.region) + i * row_stride_)
      throw RunError{"rows that do not lie side by side"};
  }
  return elements;
}

}  // namespace tutti::internal
