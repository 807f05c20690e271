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
    : holds_(goal.collective, layout.ranks(), goal.root), rank_(schedule.rank), in_place_(in_place) {
  partition_.count = holds_.traits.has_bytes() ? count : 0;
  partition_.slices = schedule.slices;
  partition_.chunks = schedule.chunks;
  for (std::size_t slice = 0; slice < partition_.slices; ++slice)
    for (std::size_t chunk = 0; chunk < partition_.chunks; ++chunk)
      scratch_stride_ = std::max(scratch_stride_, partition_.chunk(slice, chunk).size());
  scratch_.assign(schedule.scratch_rows, std::vector<Element>(scratch_stride_ * partition_.chunks));
  output_.resize(partition_.count);

  const Arithmetic arithmetic(layout, goal);
  const int rows = arithmetic.combines() ? layout.leaves_of(schedule.rank) : 1;
  const int first = arithmetic.combines() ? layout.first_leaf[schedule.rank] : schedule.rank;
  inputs_.assign(std::max(rows, 1), std::vector<Element>(partition_.count));
  const RowRange own = holds_.input(schedule.rank);
  const bool by_slices = holds_.traits.has_row_per_rank();
  ElementRange held{0, own.count > 0 ? partition_.count : 0};
  if (by_slices && own.count > 0)
    held = {partition_.slice(static_cast<std::size_t>(own.first)).begin,
            partition_.slice(static_cast<std::size_t>(own.first + own.count - 1)).end};
  for (int row = 0; row < rows; ++row)
    for (std::size_t i = held.begin; i < held.end; ++i) inputs_[row][i] = {arithmetic.input(first + row, i), true};
}

std::size_t RankMemory::length(const Region& region) const {
  if (region.slice >= partition_.slices || region.chunk >= partition_.chunks)
    throw RunError{"a region that does not exist"};
  return partition_.chunk(region.slice, region.chunk).size();
}

Elements RankMemory::at(const Region& region) {
  const std::size_t size = length(region);
  const std::size_t rows = region.space == Space::output  ? 1
                           : region.space == Space::input ? inputs_.size()
                                                          : scratch_.size();
  if (region.row >= rows) throw RunError{"a row that does not exist"};
  if (region.space == Space::scratch)
    return Elements(scratch_[region.row]).subspan(region.chunk * scratch_stride_, size);
  const bool is_held =
      region.space == Space::output ? holds_.gets(rank_, region.slice) : holds_.gives(rank_, region.slice);
  if (holds_.traits.has_bytes() && !is_held) throw RunError{"a part of a buffer that the rank does not hold"};
  std::vector<Element>& whole = region.space == Space::output && !in_place_ ? output_ : inputs_[region.row];
  return Elements(whole).subspan(partition_.chunk(region.slice, region.chunk).begin, size);
}

}  // namespace tutti::internal
