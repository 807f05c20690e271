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

MemoryCheck::MemoryCheck(DType dtype, std::size_t row_bytes, std::size_t pitch_bytes, std::size_t rows, bool by_slices)
    : element_(size_of(dtype)),
      partial_(accumulation_size_of(dtype)),
      row_bytes_(row_bytes),
      pitch_bytes_(pitch_bytes),
      rows_(rows),
      by_slices_(by_slices) {}

void MemoryCheck::enter(const Plan& plan) {
  plan_ = &plan;
  scratch_.clear();
}

void MemoryCheck::see(const Region& region, const Place& place, std::size_t bytes) {
  const std::size_t element = region.space == Space::scratch ? partial_ : element_;
  if (place.space != region.space || place.offset % element != 0 || bytes % element != 0)
    throw Refutation{fmt::format("{} is not where {} bytes lie at {}", to_text(region), bytes, place.offset)};
  see_length(region, bytes / element);
  if (region.space != Space::scratch) return see_in_buffer(region, place.offset, bytes);
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
  const std::size_t bias = in ? plan_->input_bias : plan_->output_bias;
  const std::size_t rows = in ? plan_->input_rows : plan_->output_rows;
  const std::size_t buffer_end = rows == 0 ? bias : bias + (rows - 1) * pitch_bytes_ + row_bytes_;
  if (region.row != 0 || (bytes != 0 && (offset < bias || offset + bytes > buffer_end)))
    throw Refutation{fmt::format("{} lies outside of the caller's buffer", to_text(region))};
  const auto [found, fresh] = message_.try_emplace({region.slice, region.chunk}, Bytes{offset, offset + bytes});
  if (found->second.begin != offset)
    throw Refutation{
        fmt::format("{} begins at byte {}, and elsewhere at {}", to_text(region), offset, found->second.begin)};
}

void MemoryCheck::leave() const { check_disjoint(scratch_, "scratch"); }

void MemoryCheck::check_whole_message() const {
  check_disjoint(message_, "the message");
  std::vector<std::size_t> held(rows_);
  for (const auto& [chunk, bytes] : message_) {
    if (bytes.begin == bytes.end) continue;
    const std::size_t row = by_slices_ ? chunk.first : 0;
    if (bytes.begin < row * pitch_bytes_ || bytes.end > row * pitch_bytes_ + row_bytes_)
      throw Refutation{fmt::format("slice {} chunk {} lies outside of its row", chunk.first, chunk.second)};
    held[row] += bytes.end - bytes.begin;
  }
  for (std::size_t row = 0; row < rows_; ++row)
    if (held[row] != row_bytes_)
      throw Refutation{
          fmt::format("row {} of the message has {} bytes, and its chunks {}", row, row_bytes_, held[row])};
}

}  // namespace tutti::internal
