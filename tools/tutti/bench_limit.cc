#include "bench_limit.h"

#include <fmt/format.h>

namespace tutti::tools {

std::unique_ptr<LimitLoops> loops_for(const BenchOptions& options, int ranks, std::size_t max_bytes) {
  if (!options.ranks) return nullptr;
  if (options.transport == "verbs") return nullptr;
  if (options.transport != "tcp") return shm_loops(options.collective, ranks, max_bytes);
  return ranks == 2 ? tcp_loops(options.collective, max_bytes) : nullptr;
}

std::string limit_words(const BenchOptions& options, int ranks) {
  if (!options.ranks) return "none, for ranks that a launcher placed; with -n they are started here and it is measured";
  if (options.transport == "tcp") {
    return ranks == 2 ? "two processes that only send and receive over one loopback connection, measured in turn"
                      : "none over tcp but for 2 ranks";
  }
  if (options.transport == "verbs") return "none over verbs: measure it with perftest's ib_write_lat and ib_write_bw";
  const bool reduces = options.collective == Collective::all_reduce || options.collective == Collective::reduce_scatter;
  const bool as_float = reduces && options.dtype != DType::float32;
  return fmt::format("plain loops of {} process{} over one mapping{}, measured in turn with each size", ranks,
                     ranks == 1 ? "" : "es", as_float ? ", adding float32" : "");
}

}  // namespace tutti::tools
