// What `tutti bench` is asked to do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/memory.h"
#include "tutti/types.h"

namespace CLI {
class App;
}  // namespace CLI

namespace tutti::internal::tools {

struct BenchOptions {
  Collective collective = Collective::all_reduce;
  bool is_reduce = false;    // `bench reduction`: no collective, but the reduction alone (reduce.h)
  std::optional<int> ranks;  // to start here; nothing: this process is one rank of a job that a launcher started. Of
                             // `bench reduction` the sources
  std::string transport = "auto";
  Algorithm algorithm = Algorithm::automatic;
  Order order = Order::canonical;
  DType dtype = DType::float32;
  Op op = Op::sum;
  int root = 0;

  std::uint64_t min_bytes = 8;
  std::uint64_t max_bytes = 16 << 20;
  std::uint64_t factor = 8;
  std::vector<std::uint64_t> sizes;  // bytes; if not empty, instead of the three above
  int iterations = 0;                // calls a round; 0: by the size, as many as fit a tenth of a second
  int round_ms = 0;                  // a round takes about as long; 0: no longer than a tenth of a second
  int rounds = 5;

  HostBuffers buffers = HostBuffers::own;
  bool async = false;
  bool in_place = false;
  bool touch = false;
  std::string device = "cpu";
  bool json = false;
};

// Describes the options to the parser, which then writes what it finds to `options`.
void describe(CLI::App& parser, BenchOptions& options);

// Throws UsageError, in words, where `ranks` ranks cannot do what is asked.
void check(const BenchOptions& options, int ranks);

// Throws UsageError, in words, for what is asked of `bench reduction` and says nothing to it. parser: that has parsed
// it.
void check_reduce(const CLI::App& parser, const BenchOptions& options);

// Says on stderr where sizes are made smaller, as no whole number of elements has them.
void mention_rounding(const BenchOptions& options, int ranks);

// The messages to measure, in elements of one rank's call: of its part for all_gather and reduce_scatter, of the whole
// otherwise. Sizes are rounded down to whole elements on every rank. A barrier has one, of none.
std::vector<std::size_t> counts_to_measure(const BenchOptions& options, int ranks);

// Whether all ranks' buffers lie on one GPU.
bool is_on_one_gpu(const BenchOptions& options);

// How many rows of `count` elements the whole message has: `ranks` for all_gather and its like, else 1.
std::size_t parts_of(Collective collective, int ranks);

}  // namespace tutti::internal::tools
