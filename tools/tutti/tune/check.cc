#include "tune/check.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "bench/limit.h"
#include "bench/measure.h"
#include "bench/options.h"
#include "plan/candidates.h"
#include "runtime/any_call.h"
#include "selection/choose_text.h"
#include "types/collective.h"

namespace tutti::internal::tools {
namespace {

constexpr double kSampleUs = 3000;

// One kind of call, again and again.
class Subject {
 public:
  Subject(Communicator& world, const Check& check, std::byte* in, std::byte* out)
      : world_(world), check_(check), in_(in), out_(out) {
    const auto ranks = static_cast<std::size_t>(world.size());
    count_ = check.bytes / sizeof(float) / parts_of(check.entry->collective, static_cast<int>(ranks));
    calls_ = static_cast<std::size_t>(std::clamp(kSampleUs / std::max(check.predicted_us, 0.01), 3.0, 2000.0));
  }

  double sample() {
    world_.barrier();
    const double start = now_us();
    for (std::size_t i = 0; i < calls_; ++i) call(static_cast<int>(i % static_cast<std::size_t>(world_.size())));
    return (now_us() - start) / static_cast<double>(calls_);
  }

 private:
  // The roots take turns, or one of them would run ahead of the ranks that it sends to.
  void call(int turn) {
    const AlgorithmEntry& entry = *check_.entry;
    AnyCall::run(world_,
                 {.collective = entry.collective,
                  .dtype = DType::float32,
                  .algorithm = entry.algorithm,
                  .root = traits_of(entry.collective).has_root() ? turn : 0,
                  .count = count_},
                 entry.collective == Collective::broadcast ? out_ : in_, out_);
  }

  Communicator& world_;
  const Check& check_;
  std::byte *in_, *out_;
  std::size_t count_, calls_;
};

std::vector<Check> subjects(const internal::ChoiceTable& table, int ranks, const std::string& transport,
                            const std::vector<std::size_t>& sizes) {
  const internal::Chooser chooser(table, ranks, transport == "tcp" ? ranks : 1);
  std::vector<Check> checks;
  for (const AlgorithmEntry& entry : catalogue()) {
    if (!entry.canonical && ranks > 2) continue;
    for (const std::size_t size : sizes) {
      const std::size_t bytes = traits_of(entry.collective).has_bytes() ? size : 0;
      const int chunks = chooser.chunks(entry.collective, entry.algorithm, bytes, Order::canonical);
      const bool chosen = chooser.choose(entry.collective, bytes, Order::canonical) == entry.algorithm;
      checks.push_back(
          {&entry, transport, bytes, chosen, predict(entry, ranks, bytes, chunks, table.model, transport), 0});
      if (!traits_of(entry.collective).has_bytes()) break;
    }
  }
  return checks;
}

}  // namespace

double Check::error() const { return std::abs(predicted_us - measured_us) / std::max(measured_us, 1e-3); }

double median_error(const std::vector<Check>& checks) {
  std::vector<double> errors;
  for (const Check& check : checks) errors.push_back(check.error());
  return errors.empty() ? 0 : median(std::move(errors));
}

double predict(const AlgorithmEntry& entry, int ranks, std::size_t bytes, int chunks, const CostModel& model,
               const std::string& transport) {
  Question question{entry.collective, Layout::of(ranks), bytes};
  question.one_machine = transport == "tcp";  // by which every rank counts as a host of its own, to the algorithms
  if (question.one_machine) std::iota(question.layout.host.begin(), question.layout.host.end(), 0);
  return price_of(entry, chunks, question, model).us;
}

std::vector<Check> check_predictions(Communicator& world, const std::string& transport,
                                     const std::vector<std::size_t>& sizes, int rounds,
                                     const std::function<void(int)>& tell) {
  const auto table = internal::parse_table(world.table(), "the table");
  std::vector<Check> checks = subjects(table, world.size(), transport, sizes);
  const std::size_t room = std::ranges::max(sizes);
  BenchMemory in(world, room, HostBuffers::own), out(world, room, HostBuffers::own);
  std::fill_n(in.data(), room, std::byte{0});
  std::fill_n(out.data(), room, std::byte{0});
  std::vector<std::vector<double>> samples(checks.size());
  for (int round = -1; round < rounds; ++round) {
    tell(round + 1);
    for (std::size_t i = 0; i < checks.size(); ++i) {
      double mine = Subject(world, checks[i], in.data(), out.data()).sample();
      world.all_reduce(std::span(&mine, 1), Op::max);
      if (round >= 0) samples[i].push_back(mine);  // the first warms caches and opens connections
    }
  }
  for (std::size_t i = 0; i < checks.size(); ++i) checks[i].measured_us = median(samples[i]);
  return checks;
}

}  // namespace tutti::internal::tools
