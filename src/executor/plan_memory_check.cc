#include "executor/plan_memory_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
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

MemoryCheck::MemoryCheck(DType dtype, const Distribution& holds)
    : element_(size_of(dtype)), partial_(accumulation_size_of(dtype)), holds_(holds) {}

void MemoryCheck::enter(const Plan& plan, int rank, Buffers buffers) {
  plan_ = &plan;
  rank_ = rank;
  buffers_ = std::move(buffers);
  scratch_.clear();
  const auto note = [&](const RowRange& held, const std::vector<Bytes>& rows) {
    if (rows.size() != static_cast<std::size_t>(held.count))
      throw Refutation{fmt::format("rank {} has {} rows in a buffer, not {}", rank, held.count, rows.size())};
    for (int i = 0; i < held.count; ++i) {
      const Bytes& row = rows[static_cast<std::size_t>(i)];
      const int number = held.first + i * held.step;
      const auto [found, fresh] = lengths_.try_emplace(number, row.end - row.begin);
      if (found->second != row.end - row.begin)
        throw Refutation{
            fmt::format("row {} has {} bytes, and elsewhere {}", number, row.end - row.begin, found->second)};
    }
  };
  note(holds_.input(rank), buffers_.input);
  note(holds_.output(rank), buffers_.output);
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
  const auto outside = [&] {
    return Refutation{fmt::format("{} lies outside of its row of the caller's buffer", to_text(region))};
  };
  if (region.row != 0 || !held.holds(row)) throw outside();
  const Bytes in_buffer = (in ? buffers_.input : buffers_.output)[static_cast<std::size_t>(held.index(row))];
  if (offset < in_buffer.begin || offset + bytes > in_buffer.end) throw outside();
  const std::size_t begin = in_buffer.begin;
  const Bytes here{offset - begin, offset - begin + bytes};
  const auto [found, fresh] = message_.try_emplace({region.slice, region.chunk}, here);
  if (found->second.begin != here.begin)
    throw Refutation{fmt::format("{} begins at byte {} of its row, and elsewhere at {}", to_text(region), here.begin,
                                 found->second.begin)};
}

void MemoryCheck::leave() const { check_disjoint(scratch_, "scratch"); }

void MemoryCheck::check_whole_message() {
  std::map<int, std::map<Chunk, Bytes>> rows;
  for (const auto& [row, bytes] : lengths_) rows[row];
  for (const auto& [chunk, bytes] : message_)
    rows[holds_.traits.has_rows() ? static_cast<int>(chunk.first) : 0].emplace(chunk, bytes);
  for (const auto& [row, chunks] : rows) {
    check_disjoint(chunks, "a row of the message");
    std::size_t held = 0;
    for (const auto& [chunk, bytes] : chunks) held += bytes.end - bytes.begin;
    if (held != lengths_[row])
      throw Refutation{fmt::format("row {} of the message has {} bytes, and its chunks {}", row, lengths_[row], held)};
  }
}

}  // namespace tutti::internal
