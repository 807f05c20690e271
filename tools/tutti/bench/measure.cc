#include "bench/measure.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <thread>

#include "bench/limit.h"
#include "collectives/catalogue.h"
#include "executor/device_rendezvous.h"
#include "runtime/any_call.h"
#include "selection/choose_text.h"

namespace tutti::internal::tools {
namespace {

constexpr double kRoundUs = 100e3;  // a round of a size takes about as long, or less
constexpr std::size_t kTrial = 3, kMostCalls = 100'000'000;

}  // namespace

double slowest_us(Communicator& world, const std::vector<double>& rounds) {
  std::vector<double> all(rounds.size() * static_cast<std::size_t>(world.size())), slowest(rounds.size());
  world.all_gather(rounds.data(), all.data(), rounds.size(), DType::float64);
  for (std::size_t at = 0; at < all.size(); ++at)
    slowest[at % rounds.size()] = std::max(slowest[at % rounds.size()], all[at]);
  return median(slowest);
}

Bench::Bench(Communicator& world, const BenchOptions& options, std::size_t max_count, std::optional<int> device)
    : world_(world),
      options_(options),
      holds_(options.collective, world.size(), options.root),
      expectation_(options, world.size()),
      table_(internal::hash_of(internal::parse_table(world.table(), "the table"))),
      buffers_(world, max_count * size_of(options.dtype) * parts_of(options.collective, world.size()), options.buffers,
               device) {}

void Bench::aim_at(std::size_t count) {
  const std::size_t row_bytes = count * size_of(options_.dtype);
  const RowRange in = holds_.input(world_.rank()), out = holds_.output(world_.rank());
  count_ = count;
  in_count_ = count * static_cast<std::size_t>(in.count);
  out_count_ = count * static_cast<std::size_t>(out.count);
  in_ = buffers_.data(0);
  out_ = buffers_.data(options_.in_place ? 0 : 1);
  if (options_.collective == Collective::broadcast) out_ = in_;  // as MPI has it
  if (!options_.in_place) return;
  in_ += static_cast<std::size_t>(in.at) * row_bytes;
  out_ += static_cast<std::size_t>(out.at) * row_bytes;
}

void Bench::prepare() {
  const std::size_t element = size_of(options_.dtype);
  std::memset(buffers_.stage(out_), 0xa5, out_count_ * element);
  buffers_.put(out_, out_count_ * element);
  if (in_count_ == 0) return;
  write_input(buffers_.stage(in_), 0, in_count_, options_.dtype, world_.rank());
  buffers_.put(in_, in_count_ * element);
}

void Bench::call() {
  const CallSpec spec{.collective = options_.collective,
                      .dtype = options_.dtype,
                      .op = options_.op,
                      .order = options_.order,
                      .algorithm = options_.algorithm,
                      .root = options_.root,
                      .count = count_};
  options_.async ? AnyCall::start(world_, spec, in_, out_).wait() : AnyCall::run(world_, spec, in_, out_);
}

BenchRow Bench::measure(std::size_t count) {
  aim_at(count);
  BenchRow row;
  row.algorithm = options_.algorithm != Algorithm::automatic
                      ? options_.algorithm
                      : world_.choose(options_.collective, count, options_.dtype, options_.order);
  row.table = table_;
  row.bytes = count * size_of(options_.dtype) * parts_of(options_.collective, world_.size());
  // As the library does what lies on one device (docs/design/device_memory.md).
  row.one_kernel = is_on_one_gpu(options_) && world_.size() <= internal::kMaxParticipants && row.bytes > 0 &&
                   find_algorithm(options_.collective, row.algorithm)->canonical;
  if (holds_.traits.combines()) order_ = derive_order(options_, row.algorithm, world_.size(), count);
  prepare();
  call();
  check(row);

  const std::size_t calls = calls_a_round();
  prepare();
  time_round(calls);  // warms caches and page tables
  std::vector<double> mine;
  for (int round = 0; round < options_.rounds; ++round) mine.push_back(time_round(calls));
  if (repeatable()) check(row);

  row.us = slowest_us(world_, mine);
  return row;
}

void Bench::check(BenchRow& row) {
  if (!holds_.traits.has_bytes()) {
    if (options_.ranks) row.wrong = row.wrong.value_or(0) + late_barriers();
    return;
  }
  const std::size_t out_bytes = out_count_ * size_of(options_.dtype);
  const std::byte* const out = buffers_.get(out_, out_bytes);
  const std::uint64_t wrong = expectation_.count_wrong(out, count_, world_.rank(), order_);
  const std::vector<std::uint64_t> all = gather<std::uint64_t>({digest(out, out_bytes), wrong});
  std::vector<std::uint64_t> hashes;
  for (std::size_t at = 0; at < all.size(); at += 2) {
    if (holds_.output(static_cast<int>(at / 2)).count > 0) hashes.push_back(all[at]);
    row.wrong = row.wrong.value_or(0) + all[at + 1];
  }
  if (hashes.empty()) return;  // an exclusive scan of one rank has no output
  const bool agreed = std::ranges::all_of(hashes, [&](std::uint64_t hash) { return hash == hashes.front(); });
  row.hash = agreed ? hashes.front() : digest(hashes.data(), hashes.size() * sizeof hashes.front());
}

// Barriers that let some rank go before the last one had entered. Each rank is the last one once. Needs a clock that
// all ranks share: one host.
std::uint64_t Bench::late_barriers() {
  std::uint64_t early = 0;
  for (int last = 0; last < world_.size(); ++last) {
    if (world_.rank() == last) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const double entered = now_us();
    call();
    const std::vector<double> all = gather<double>({entered, now_us()});
    double last_entry = 0;
    for (std::size_t at = 0; at < all.size(); at += 2) last_entry = std::max(last_entry, all[at]);
    for (std::size_t at = 1; at < all.size(); at += 2) early += all[at] < last_entry;
  }
  return early;
}

// As many as the loops of the limit make for such a size, but no more than fit the time of a round.
std::size_t Bench::calls_a_round() {
  if (options_.iterations > 0) return static_cast<std::size_t>(options_.iterations);
  const double work =
      static_cast<double>(count_ * size_of(options_.dtype) * parts_of(options_.collective, world_.size())) *
      world_.size();
  const std::size_t most = options_.round_ms > 0 ? kMostCalls : calls_to_time(work, world_.size());
  const double round_us = options_.round_ms > 0 ? options_.round_ms * 1e3 : kRoundUs;
  const double trial_us = options_.round_ms > 0 ? round_us / 10 : 0;
  std::uint64_t calls = kTrial;
  time_round(calls);  // the first ones wait for the system to find memory
  for (bool is_trial = true; is_trial;) {
    const double start = now_us();
    time_round(calls);
    world_.barrier();  // the root of a broadcast is done long before the others
    const double us = now_us() - start;
    std::array<std::uint64_t, 2> next{calls * 8, 1};
    if (us >= trial_us || calls >= kMostCalls)
      next = {std::clamp(static_cast<std::size_t>(round_us * static_cast<double>(calls) / us), kTrial,
                         std::max(most, kTrial)),
              0};
    world_.broadcast(std::span<std::uint64_t>(next), 0);  // the ranks' clocks differ
    calls = next[0];
    is_trial = next[1] != 0;
  }
  return calls;
}

// Mean microseconds of a call on this rank.
double Bench::time_round(std::size_t calls) {
  world_.barrier();
  double us = 0;
  if (!options_.touch) {
    const double start = now_us();
    for (std::size_t i = 0; i < calls; ++i) call();
    us = now_us() - start;
  } else {
    for (std::size_t i = 0; i < calls; ++i) {
      prepare();
      world_.barrier();
      const double start = now_us();
      call();
      us += now_us() - start;
    }
  }
  return us / static_cast<double>(calls);
}

// In place, the input of the next call is the output of the one before.
bool Bench::repeatable() const {
  return !options_.in_place || options_.touch || !(holds_.traits.combines() || holds_.traits.exchanges());
}

template <class T>
std::vector<T> Bench::gather(const std::vector<T>& mine) {
  std::vector<T> all(mine.size() * static_cast<std::size_t>(world_.size()));
  world_.all_gather(mine.data(), all.data(), mine.size(), dtype_of<T>);
  return all;
}

}  // namespace tutti::internal::tools
