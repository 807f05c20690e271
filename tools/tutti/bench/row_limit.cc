#include "bench/row_limit.h"

#include <fmt/format.h>

#include <utility>

#include "types/collective.h"

namespace tutti::internal::tools {

namespace {

bool has_loops(const BenchOptions& options, int ranks) {
  if (!options.ranks || is_on_one_gpu(options) || options.transport == "verbs") return false;
  return options.transport != "tcp" || ranks == 2;
}

// The buffers of ranks that are processes, unless all ranks map them. Threads reach each other's.
bool copies_through_shared_memory(const BenchOptions& options) {
  const CollectiveTraits& traits = traits_of(options.collective);
  return options.buffers == HostBuffers::own && options.transport != "inproc" && options.device != "cuda" &&
         traits.has_bytes() && !traits.is_scan();
}

std::string transport_words(const BenchOptions& options, int ranks) {
  if (!options.ranks) return "none, for ranks that a launcher placed; with -n they are started here and it is measured";
  if (options.transport == "tcp") {
    return ranks == 2 ? "two processes that only send and receive over one loopback connection, measured in turn"
                      : "none over tcp but for 2 ranks";
  }
  if (options.transport == "verbs") return "none over verbs: measure it with perftest's ib_write_lat and ib_write_bw";
  const bool combines = traits_of(options.collective).combines();
  const bool as_float = combines && options.dtype != DType::float32;
  std::string way = "over one mapping";
  if (copies_through_shared_memory(options)) {
    way = "that copy in and out of shared memory";
    if (!combines)
      way += copies_halves(options.collective, ranks) ? ",\n#        or read and write each other's private memory"
                                                      : ",\n#        or read each other's private memory";
  }
  return fmt::format("plain loops of {} process{} {}{}, measured in turn with each size", ranks, ranks == 1 ? "" : "es",
                     way, as_float ? ", adding float32" : "");
}

}  // namespace

std::unique_ptr<LimitLoops> loops_for(const BenchOptions& options, int ranks, std::size_t max_bytes) {
  if (!has_loops(options, ranks)) return nullptr;
  if (options.transport == "tcp") return tcp_loops(options.collective, max_bytes);
  if (!copies_through_shared_memory(options)) return shm_loops(options.collective, ranks, max_bytes);
  auto copies = own_loops(options.collective, ranks, max_bytes);
  if (traits_of(options.collective).combines()) return copies;
  return quicker_of(std::move(copies), read_loops(options.collective, ranks, max_bytes));
}

std::string limit_words(const BenchOptions& options, int ranks) {
  if (options.device != "cuda") return transport_words(options, ranks);
  if (!traits_of(options.collective).has_bytes())
    return is_on_one_gpu(options) ? "none: a barrier has no bytes" : transport_words(options, ranks);
  if (is_on_one_gpu(options)) {
    return "copies within the GPU's memory (cudaMemcpyAsync), by its clock, measured in turn with each size, that "
           "read\n"
           "#        and write in all as many bytes as the ranks' inputs, each read once, and outputs, each written "
           "once";
  }
  const std::string copies =
      "copies of what each rank reads and writes, from its GPU to pinned memory and back at once";
  if (has_loops(options, ranks))
    return fmt::format("the slower of {}\n#        and {}", transport_words(options, ranks), copies);
  return fmt::format("{};\n#        of the transport: {}", copies, transport_words(options, ranks));
}

}  // namespace tutti::internal::tools
