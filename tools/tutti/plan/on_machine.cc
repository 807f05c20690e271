#include "plan/on_machine.h"

#include <algorithm>
#include <set>
#include <utility>

#include "executor/plan.h"
#include "transport/shm/lane.h"
#include "tutti/error.h"

namespace tutti::internal::tools {
namespace {

constexpr std::size_t kElement = sizeof(float);

// As price_of() takes it: the bytes of a question are those of the whole message.
std::size_t bytes_of(const Schedule& schedule, const Step& step, const Partition& partition) {
  std::size_t elements = 0;
  for (std::size_t i = 0; i < Schedule::rows_of(step); ++i) {
    const Region row = schedule.row_of(step, i);
    elements += partition.chunk(row.slice, row.chunk).size();
  }
  return elements * kElement;
}

// Counts what one rank does.
class RankCount {
 public:
  RankCount(const Schedule& schedule, const PlacedRanks& placed) : schedule_(schedule), placed_(placed) {}

  void add(const Step& step, const Partition& partition, Traffic& traffic) {
    if (step.kind == StepKind::send) add_send(step, partition, traffic);
    if (step.kind == StepKind::receive) peers_.insert(step.peer);
    if (step.kind == StepKind::reduce) add_reduce(step);
  }
  void add_to(Traffic& traffic) const {
    traffic.peers = std::max(traffic.peers, static_cast<int>(peers_.size()));
    traffic.rings += static_cast<int>(rings_.size());
    traffic.combining += inputs_ > 0 ? 1 : 0;
    traffic.inputs = std::max(traffic.inputs, inputs_);
    traffic.far_inputs = std::max(traffic.far_inputs, far_inputs_);
  }

 private:
  void add_send(const Step& step, const Partition& partition, Traffic& traffic) {
    const std::size_t bytes = bytes_of(schedule_, step, partition);
    const Distance distance = placed_.between(schedule_.rank, step.peer);
    peers_.insert(step.peer);
    if (bytes > shm::kInlineBytes) rings_.insert(step.peer);
    if (distance != Distance::cache) traffic.across_caches += bytes;
    if (distance == Distance::machine) traffic.across_packages += bytes;
  }
  void add_reduce(const Step& step) {
    int far = 0;
    for (const Source& source : schedule_.sources_of(step)) {
      if (source.peer == kLocal) continue;
      peers_.insert(source.peer);
      if (placed_.between(schedule_.rank, source.peer) != Distance::cache) ++far;
    }
    if (step.part_count < 2) return;  // a copy
    inputs_ = std::max(inputs_, static_cast<int>(step.part_count));
    far_inputs_ = std::max(far_inputs_, far);
  }

  const Schedule& schedule_;
  const PlacedRanks& placed_;
  std::set<int> peers_, rings_;
  int inputs_ = 0, far_inputs_ = 0;
};

MachineCandidate candidate_on(const AlgorithmEntry& entry, const Grouping* hosts, const PlacedRanks& placed,
                              const Question& question, const internal::Chooser& chooser, const DistanceCosts& costs) {
  MachineCandidate each{{&entry, 1, {}, objection_to(entry, question)}, hosts == nullptr ? "" : hosts->by, {}};
  Candidate& candidate = each.candidate;
  if (!candidate.why_not.empty()) return each;
  if (entry.pipelined)
    candidate.chunks = chooser.chunks(entry.collective, entry.algorithm, question.bytes, question.order);
  Layout layout = question.layout;
  if (hosts != nullptr) layout.host = hosts->group;
  CostModel model;
  model.reduce = costs.reduce;
  try {
    const auto schedules = build_all(entry, layout, {.chunks = candidate.chunks});
    candidate.cost =
        price(schedules, question.layout, question.bytes / kElement, kElement, accumulation_size_of(DType::float32),
              model, [&](int from, int to) -> const LinkCost& { return costs.at(placed.between(from, to)); });
    each.traffic = traffic_of(schedules, question, placed);
  } catch (const Error& error) {
    candidate.why_not = error.what();
  }
  return each;
}

}  // namespace

Traffic traffic_of(std::span<const Schedule> schedules, const Question& question, const PlacedRanks& placed) {
  Traffic traffic;
  for (const Schedule& schedule : schedules) {
    Partition partition = internal::partition_for(schedule, DType::float32, question.bytes / kElement);
    if (schedule.exact_slices) partition.slices = schedules.size();
    RankCount rank(schedule, placed);
    for (const Step& step : schedule.steps) rank.add(step, partition, traffic);
    rank.add_to(traffic);
  }
  return traffic;
}

std::vector<MachineCandidate> candidates_on(const PlacedRanks& placed, const Question& question,
                                            const internal::Chooser& chooser, const DistanceCosts& costs) {
  const std::vector<Grouping> groupings = placed.groupings();
  std::vector<MachineCandidate> all;
  for (const AlgorithmEntry& entry : catalogue()) {
    if (entry.collective != question.collective) continue;
    all.push_back(candidate_on(entry, nullptr, placed, question, chooser, costs));
    if (entry.algorithm != Algorithm::hierarchical || !all.back().candidate.cost) continue;
    for (const Grouping& hosts : groupings)
      all.push_back(candidate_on(entry, &hosts, placed, question, chooser, costs));
  }
  std::ranges::stable_sort(all, [](const MachineCandidate& a, const MachineCandidate& b) {
    const auto &one = a.candidate.cost, &other = b.candidate.cost;
    return one && (!other || one->us < other->us);
  });
  return all;
}

}  // namespace tutti::internal::tools
