#include "executor/plan_memory_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "schedule/text.h"
#include "schedule/verify_form.h"

namespace tutti::internal {
namespace {

// The first that two share, or overlap in.
template <class Map>
void check_disjoint(const Map& regions, std::string_view what) {
  std::size_t end = 0;
  std::vector<std::pair<std::size_t, std::size_t>> sorted;
  for (const auto& [chunk, bytes] : regions)
    if (bytes.begin != bytes.end) sorted.emplace_back(bytes.begin, bytes.end);
  std::ranges::sort(sorted);
  for (const auto& [begin, after] : sorted) {
    if (begin < end) throw Refutation{fmt::format("two chunks share byte {} of {}", begin, what)};
    end = after;
  }
}

}  // namespace

MemoryCheck::MemoryCheck(DType dtype, std::size_t row_bytes, std::size_t pitch_bytes, const Distribution& holds)
    : element_(size_of(dtype)),
      partial_(accumulation_size_of(dtype)),
      row_bytes_(row_bytes),
      pitch_bytes_(pitch_bytes),
      holds_(holds) {}

void MemoryCheck::enter(const Plan& plan, int rank) {
  plan_ = &plan;
  rank_ = rank;
  scratch_.clear();
}

void MemoryCheck::see(const Region& region, const Place& place, std::size_t bytes) {
  const std::size_t element = region.space == Space::scratch ? partial_ : element_;
  if (place.space != (is_scratch(region.space) ? Space::scratch : region.space) || place.offset % element != 0 ||
      bytes % element != 0)
    throw Refutation{fmt::format("{} is not where {} bytes lie at {}", to_text(region), bytes, place.offset)};
  see_length(region, bytes / element);
  if (!is_scratch(region.space)) return see_in_buffer(region, place.offset, bytes);
  const Bytes here{place.offset, place.offset + bytes};
  const auto [found, fresh] = scratch_.try_emplace({region.row, region.chunk}, here);
  if (found->second.begin != here.begin) throw Refutation{fmt::format("{} lies in two places", to_text(region))};
  found->second.end = std::max(found->second.end, here.end);
  if (here.end > plan_->scratch_bytes) throw Refutation{fmt::format("{} lies outside of scratch", to_text(region))};
}

void MemoryCheck::see_length(const Region& region, std::size_t count) {
  const auto [found, fresh] = counts_.try_emplace({region.slice, region.chunk}, count);
  if (found->second != count)
    throw Refutation{fmt::format("slice {} chunk {} has {} elements, and elsewhere {}", region.slice, region.chunk,
                                 count, found->second)};
}

void MemoryCheck::see_in_buffer(const Region& region, std::size_t offset, std::size_t bytes) {
  const bool in = region.space == Space::input;
  const RowRange held = in ? holds_.input(rank_) : holds_.output(rank_);
  const int row = holds_.traits.has_rows() ? static_cast<int>(region.slice) : 0;
  if (bytes == 0) return;
  const std::size_t begin = held.holds(row) ? static_cast<std::size_t>(held.index(row)) * pitch_bytes_ : 0;
  if (region.row != 0 || !held.holds(row) || offset < begin || offset + bytes > begin + row_bytes_)
    throw Refutation{fmt::format("{} lies outside of its row of the caller's buffer", to_text(region))};
  const Bytes here{offset - begin, offset - begin + bytes};
  const auto [found, fresh] = message_.try_emplace({region.slice, region.chunk}, here);
  if (found->second.begin != here.begin)
    throw Refutation{fmt::format("{} begins at byte {} of its row, and elsewhere at {}", to_text(region), here.begin,
                                 found->second.begin)};
}

void MemoryCheck::leave() const { check_disjoint(scratch_, "scratch"); }

void MemoryCheck::check_whole_message() const {
  std::vector<std::map<Chunk, Bytes>> rows(static_cast<std::size_t>(holds_.rows()));
  for (const auto& [chunk, bytes] : message_) rows[holds_.traits.has_rows() ? chunk.first : 0].emplace(chunk, bytes);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    check_disjoint(rows[row], "a row of the message");
    std::size_t held = 0;
    for (const auto& [chunk, bytes] : rows[row]) held += bytes.end - bytes.begin;
    if (held != row_bytes_)
      throw Refutation{fmt::format("row {} of the message has {} bytes, and its chunks {}", row, row_bytes_, held)};
  }
}

}  // namespace tutti::internal
