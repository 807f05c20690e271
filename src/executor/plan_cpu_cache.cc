#include "executor/plan_cpu_cache.h"

#include <map>
#include <variant>

#include "memory/copy.h"

namespace tutti::internal {
namespace {

// Longer calls outgrow a core's second-level cache. There, fetches cost more than they save. But an all_reduce by two
// ranks is cut into pieces of 256 KiB, and where it has more than two, fetches save most. Measured with two ranks of an
// older Xeon (bench/results/2026-11-28-fetched-lines.md).
bool fetches_pay(Collective collective, std::size_t bytes, const Host& host) {
  const std::size_t most = host.cores.fetches_to_write_up_to;
  if (host.crowded) return false;
  return bytes <= most || (collective == Collective::all_reduce && most > 0 && bytes > 2 * most);
}

}  // namespace

void mark_past_cache(std::span<PlanStep> steps, std::span<const PlanSource> sources) {
  std::map<Place, std::size_t> last_reader;  // by what is read: a step
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (const auto* const send = std::get_if<SendStep>(&steps[i])) last_reader[send->from] = i;
    if (const auto* const reduce = std::get_if<ReduceStep>(&steps[i]))
      for (const PlanSource& source : sources.subspan(reduce->first_source, reduce->source_count))
        if (source.peer == kLocal) last_reader[source.from()] = i;
  }
  const auto is_read_after = [&](const Place& written, std::size_t step) {
    const auto reader = last_reader.find(written);
    return reader != last_reader.end() && reader->second > step;
  };
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (auto* const receive = std::get_if<ReceiveStep>(&steps[i]))
      receive->hints.past_cache = !is_read_after(receive->to, i);
    if (auto* const reduce = std::get_if<ReduceStep>(&steps[i]))
      reduce->past_cache = !is_read_after(reduce->to, i + reduce->pushes);
  }
}

void mark_fetches(std::span<PlanStep> steps, Collective collective, std::size_t bytes, const Host& host) {
  if (!fetches_pay(collective, bytes, host)) return;
  for (PlanStep& step : steps) {
    if (auto* const receive = std::get_if<ReceiveStep>(&step))
      receive->hints.fetches_to_write = receive->bytes >= kLeastFetchedBytes;
    if (auto* const reduce = std::get_if<ReduceStep>(&step))
      reduce->fetches_to_write = reduce->count * reduce->element_bytes >= kLeastFetchedBytes;
  }
}

}  // namespace tutti::internal
