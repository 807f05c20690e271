#include "executor/plan_oracle.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <span>

#include "executor/fake_channel.h"
#include "executor/operation.h"
#include "reduce/reduce.h"

namespace tutti::internal {
namespace {

constexpr std::size_t kGuardBytes = 1 << 13;  // as much as a call has, and more
constexpr std::size_t kMaxSteps = 64;         // pushes that a mutant may claim

// The canonical tree over [lo, hi), in postfix.
void append_tree(int lo, int hi, std::vector<std::uint8_t>& joins) {
  if (hi - lo == 1) return joins.push_back(0);
  const int middle = canonical_split(lo, hi);
  append_tree(lo, middle, joins);
  append_tree(middle, hi, joins);
  ++joins.back();
}

// A rank's buffers and scratch in one piece of memory, with guards around each.
class RankMemory {
 public:
  RankMemory(const Plan& plan, bool in_place, Dice& dice) : plan_(plan) {
    const std::size_t shared = std::max(plan.input_bytes, plan.output_bytes);
    const std::size_t output = in_place ? 0 : shared + kGuardBytes;
    scratch_ = kGuardBytes + output + shared + kGuardBytes;
    bytes_.resize(scratch_ + plan.scratch_bytes + kGuardBytes);
    for (std::size_t at = 0; at + 8 <= bytes_.size(); at += 8) {
      const std::uint64_t garbage = dice.draw();
      std::memcpy(&bytes_[at], &garbage, sizeof garbage);
    }
    input_ = kGuardBytes + (in_place ? static_cast<std::size_t>(std::max<std::ptrdiff_t>(-plan.in_place, 0)) : 0);
    output_ = in_place ? input_ + static_cast<std::size_t>(plan.in_place) : kGuardBytes + output;
  }

  std::span<std::byte> input() { return {&bytes_[input_], plan_.input_bytes}; }
  std::span<std::byte> output() { return {&bytes_[output_], plan_.output_bytes}; }
  std::shared_ptr<SymmetricMemory> scratch() {
    return std::make_shared<SymmetricMemory>(std::shared_ptr<std::byte>(&bytes_[scratch_], [](std::byte*) {}),
                                             plan_.scratch_bytes);
  }

  void remember() { before_ = bytes_; }
  // The call is over: the caller has its buffers back, and uses them. What the output was.
  std::vector<std::byte> give_back() {
    std::vector<std::byte> result(output().begin(), output().end());
    std::ranges::fill(input(), std::byte{0xee});
    std::ranges::fill(output(), std::byte{0xdd});
    remember();
    return result;
  }
  // Nothing but scratch has changed; nor the output, if the call is over.
  bool is_intact(bool is_over) const {
    const auto same = [&](std::size_t begin, std::size_t end) {
      return std::equal(&bytes_[begin], bytes_.data() + end, &before_[begin]);
    };
    return same(0, is_over ? scratch_ : output_) && same(output_ + plan_.output_bytes, scratch_) &&
           same(scratch_ + plan_.scratch_bytes, bytes_.size());
  }

 private:
  const Plan& plan_;
  std::size_t input_, output_, scratch_;
  std::vector<std::byte> bytes_, before_;
};

struct Rank {
  RankMemory memory;
  std::uint64_t priority = 0;
  std::vector<PeerLink> links{};
  Workspace workspace{};
  Operation operation{};
  bool started = false, done = false;
  std::vector<std::byte> result{};  // once it is done
};

class World {
 public:
  World(const PlannedCall& planned, bool in_place, std::uint64_t seed)
      : planned_(planned), size_(planned.plans.size()), dice_(seed) {
    for (std::size_t i = 0; i < size_ * size_; ++i) wires_.emplace_back(dice_);
    for (std::size_t rank = 0; rank < size_; ++rank) {
      const Plan& plan = *planned.plans[rank];
      ranks_.push_back({.memory = {plan, in_place, dice_}, .priority = dice_.draw()});
      Rank& self = ranks_.back();
      for (std::size_t peer = 0; peer < size_; ++peer)
        self.links.push_back(
            {.channel = std::make_unique<FakeChannel>(wires_[rank * size_ + peer], wires_[peer * size_ + rank])});
      self.workspace.fit(plan, [&](std::size_t) { return self.memory.scratch(); });
      self.workspace.targets.resize(kMaxSteps + 1);
      self.workspace.pushed.resize(kMaxSteps);
      fill_input(self.memory.input());
      inputs_.emplace_back(self.memory.input().begin(), self.memory.input().end());
    }
  }

  void run() {
    const FloatEnvironment environment;
    for (Rank& rank : ranks_) rank.memory.remember();
    for (std::size_t idle = 0; idle < 60 * size_; idle = act(idle > 10 * size_) ? 0 : idle + 1)
      if (std::ranges::all_of(ranks_, &Rank::done)) return check();
    throw RunError{"deadlock"};
  }

 private:
  // Small whole numbers: their sums are exact in any order.
  void fill_input(std::span<std::byte> input) {
    const DType dtype = planned_.call.dtype;
    for (std::size_t at = 0; at < input.size(); at += size_of(dtype)) {
      const float value = static_cast<float>(dice_.draw() % 128);
      std::uint32_t bits;
      std::memcpy(&bits, &value, sizeof bits);
      if (dtype == DType::bfloat16) bits >>= 16;  // exact, below 256
      std::memcpy(&input[at], &bits, size_of(dtype));
    }
  }

  // Whoever the dice choose goes on. Priorities seldom change, so that a rank is often delayed for long; fair: anybody
  // may be next, to find out whether nobody can move.
  bool act(bool fair) {
    if (dice_.one_in(2) && move_something()) return true;
    Rank* chosen = &ranks_[dice_.draw() % size_];
    if (!fair && !dice_.one_in(4))
      for (Rank& rank : ranks_)
        if (!rank.done && (chosen->done || rank.priority > chosen->priority)) chosen = &rank;
    if (dice_.one_in(4)) chosen->priority = dice_.draw();
    return !chosen->done && advance(*chosen);
  }

  bool move_something() {
    std::vector<Wire*> movable;
    for (Wire& wire : wires_)
      if (wire.can_move()) movable.push_back(&wire);
    if (movable.empty()) return false;
    movable[dice_.draw() % movable.size()]->move();
    return true;
  }

  bool advance(Rank& rank) {
    const std::size_t number = static_cast<std::size_t>(&rank - ranks_.data());
    const Plan& plan = *planned_.plans[number];
    if (!rank.started)
      rank.operation.start(plan, plan.tag, rank.links, rank.workspace, rank.memory.input().data(),
                           rank.memory.output().data());
    rank.started = true;
    const std::uint64_t moves = rank.operation.moves();
    rank.done = rank.operation.advance();
    if (rank.done && !rank.memory.is_intact(false)) throw RunError{"memory is written that is nobody's to write"};
    if (rank.done) rank.result = rank.memory.give_back();
    if (rank.done && planned_.call.collective == Collective::barrier && !std::ranges::all_of(ranks_, &Rank::started))
      throw RunError{"a rank leaves the barrier before all have entered"};
    return rank.done || rank.operation.moves() != moves;
  }

  void check() {
    if (!std::ranges::all_of(wires_, &Wire::is_over)) throw RunError{"a message is left over"};
    for (std::size_t rank = 0; rank < size_; ++rank) {
      if (!ranks_[rank].memory.is_intact(true)) throw RunError{"memory is written whose call is over"};
      const std::vector<std::byte> expected = expected_output(rank);
      if (!std::ranges::equal(std::span(ranks_[rank].result).first(expected.size()), expected))
        throw RunError{"rank " + std::to_string(rank) + "'s output is wrong"};
    }
  }

  std::vector<std::byte> expected_output(std::size_t rank) const {
    const bool is_root = rank == planned_.call.root;
    switch (planned_.call.collective) {
      case Collective::barrier: return {};
      case Collective::broadcast: return inputs_[planned_.call.root];
      case Collective::transfer: return rank > 0 ? inputs_[0] : std::vector<std::byte>{};
      case Collective::all_gather: return all_inputs();
      case Collective::all_reduce: return combined(0, planned_.call.count);
      case Collective::reduce_scatter: return combined(rank * planned_.call.count, planned_.call.count);
      case Collective::scan: return combined(0, planned_.call.count, rank + 1);
      case Collective::exclusive_scan:
        return rank > 0 ? combined(0, planned_.call.count, rank) : std::vector<std::byte>{};
      case Collective::reduce: return is_root ? combined(0, planned_.call.count) : std::vector<std::byte>{};
      case Collective::gather: return is_root ? all_inputs() : std::vector<std::byte>{};
      case Collective::all_to_all: {
        std::vector<std::byte> rows;
        const std::size_t bytes = planned_.call.count * size_of(planned_.call.dtype);
        for (const auto& input : inputs_)
          rows.insert(rows.end(), input.data() + rank * bytes, input.data() + (rank + 1) * bytes);
        return rows;
      }
      case Collective::scatter: {
        const auto& whole = inputs_[planned_.call.root];
        const std::size_t part = whole.size() / size_;
        return {whole.data() + rank * part, whole.data() + (rank + 1) * part};
      }
    }
    return {};
  }

  std::vector<std::byte> all_inputs() const {
    std::vector<std::byte> all;
    for (const auto& input : inputs_) all.insert(all.end(), input.begin(), input.end());
    return all;
  }

  // Elements [first, first + count).
  std::vector<std::byte> combined(std::size_t first, std::size_t count) const { return combined(first, count, size_); }
  // Of the first so many ranks.
  std::vector<std::byte> combined(std::size_t first, std::size_t count, std::size_t ranks) const {
    const Call& call = planned_.call;
    std::vector<std::uint8_t> joins;
    append_tree(0, static_cast<int>(ranks), joins);
    std::vector<ReduceSource> sources;
    for (std::size_t rank = 0; rank < ranks; ++rank)
      sources.push_back({.data = inputs_[rank].data() + first * size_of(call.dtype), .joins = joins[rank]});
    std::vector<std::byte> result(count * size_of(call.dtype));
    const ReduceTarget target{.data = result.data()};
    reduce({.dtype = call.dtype, .op = call.op, .finish = true, .leaves = static_cast<std::uint32_t>(ranks)}, sources,
           {&target, 1}, count);
    return result;
  }

  const PlannedCall& planned_;
  const std::size_t size_;
  Dice dice_;
  std::deque<Wire> wires_;  // from * ranks + to
  std::vector<Rank> ranks_;
  std::vector<std::vector<std::byte>> inputs_;
};

}  // namespace

std::string error_text_of(const PlannedCall& planned, bool in_place, std::uint64_t seed) {
  try {
    World(planned, in_place, seed).run();
  } catch (const RunError& error) {
    return error.what;
  }
  return {};
}

namespace {

// False where the jump of step `at` never happens.
bool write_out_jump(Plan& plan, std::size_t at) {
  ReduceStep jumps = std::get<ReduceStep>(plan.steps[at]);
  const auto begin = plan.steps.begin() + static_cast<std::ptrdiff_t>(at);
  const auto end = plan.steps.begin() + jumps.finisher;
  const auto posted_before = [&](const WaitStep& wait) {
    return std::count_if(plan.steps.begin(), begin, [&](const PlanStep& step) {
      const auto* const send = std::get_if<SendStep>(&step);
      const auto* const receive = std::get_if<ReceiveStep>(&step);
      return wait.for_sends ? send != nullptr && send->peer == wait.peer
                            : receive != nullptr && receive->peer == wait.peer;
    });
  };
  std::vector<PlanStep> steps(plan.steps.begin(), begin);
  for (auto step = begin + 1; step != end; ++step) {
    const auto* const wait = std::get_if<WaitStep>(&*step);
    if (wait == nullptr) continue;
    if (wait->messages > posted_before(*wait)) return false;
    steps.emplace_back(*wait);
  }
  const auto& finisher = std::get<ReduceStep>(*end);
  jumps.to = finisher.to;
  jumps.partial = finisher.partial;
  jumps.finish = finisher.finish;
  jumps.element_bytes = finisher.element_bytes;
  jumps.finisher = jumps.pushes = 0;
  ++jumps.reduction;
  steps.emplace_back(jumps);
  const std::size_t shift = static_cast<std::size_t>(end - plan.steps.begin()) + 1 - steps.size();
  steps.insert(steps.end(), end + 1, plan.steps.end());
  for (PlanStep& step : steps)
    if (auto* const reduce = std::get_if<ReduceStep>(&step); reduce != nullptr && reduce->finisher > shift)
      reduce->finisher -= static_cast<std::uint32_t>(shift);
  plan.steps = std::move(steps);
  return true;
}

bool is_wait(const PlanStep& step) { return std::holds_alternative<WaitStep>(step); }

}  // namespace

void write_out_jumps(Plan& plan) {
  for (std::size_t at = plan.steps.size(); at-- > 0;) {
    const auto* const reduce = std::get_if<ReduceStep>(&plan.steps[at]);
    if (reduce == nullptr || reduce->finisher == 0) continue;
    const auto between = std::span(plan.steps).subspan(at + 1, reduce->finisher - at - 1);
    if (std::ranges::all_of(between, is_wait)) continue;
    if (!write_out_jump(plan, at)) std::get<ReduceStep>(plan.steps[at]).finisher = 0;
  }
}

}  // namespace tutti::internal
