#include "bench/table.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "bench/figures.h"
#include "bench/row_limit.h"
#include "types/collective.h"

namespace tutti::internal::tools {
namespace {

// The share of the message that crosses the busiest link of a rank (nccl-tests' PERFORMANCE.md). Of a scan, which
// nccl-tests does not have: the message.
double bus_factor(Collective collective, int ranks) {
  const double n = ranks;
  const CollectiveTraits& traits = traits_of(collective);
  if (!traits.has_bytes()) return 0;
  if (traits.has_rows()) return (n - 1) / n;
  return traits.has_root() || traits.is_scan() ? 1 : 2 * (n - 1) / n;
}

std::string what_is_called(const BenchOptions& options) {
  std::string text;
  const CollectiveTraits& traits = traits_of(options.collective);
  if (traits.has_bytes()) text += fmt::format(", {}", to_string(options.dtype));
  if (traits.combines()) text += fmt::format(" {} in {} order", to_string(options.op), to_string(options.order));
  if (traits.has_root())
    text += fmt::format(" {} rank {}", traits.input == Held::at_root ? "from" : "to", options.root);
  if (options.in_place) text += ", in place";
  if (options.buffers == HostBuffers::symmetric) text += ", symmetric buffers";
  if (options.buffers == HostBuffers::adopted) text += ", adopted buffers";
  if (options.touch) text += ", inputs rewritten before each call";
  if (options.async) text += ", asynchronous";
  return text;
}

std::string gpu_words(const BenchGpu& gpu) {
  const cuda::Device& device = gpu.device;
  const std::string name = fmt::format("GPU {}, {}, PCI {}", device.index, device.name, device.pci);
  if (gpu.of == 1) return fmt::format("# all buffers lie on {}\n", name);
  return fmt::format("# the buffers of rank r of a host lie on GPU r mod {}; rank 0's: {}\n", gpu.of, name);
}

}  // namespace

Bandwidth bandwidth(const BenchRow& row, Collective collective, int ranks) {
  if (row.us <= 0) return {};
  const double algorithm = static_cast<double>(row.bytes) / row.us / 1e3;
  return {algorithm, algorithm * bus_factor(collective, ranks)};
}

std::string table_head(const BenchOptions& options, int ranks, int processors, const std::optional<BenchGpu>& gpu) {
  std::string text = fmt::format("# tutti bench {}: {} rank{}, {}{}\n", to_string(options.collective), ranks,
                                 ranks == 1 ? "" : "s", options.transport, what_is_called(options));
  text += fmt::format("# us: one of many calls back to back, the slowest rank's mean, median of {} rounds\n",
                      options.rounds);
  if (gpu) text += gpu_words(*gpu);
  text += fmt::format("# limit: {}\n", limit_words(options, ranks));
  text += fmt::format("# rank 0 was started on {} processor{}; 1 GB = 10^9 bytes\n#\n", processors,
                      processors == 1 ? "" : "s");
  return text + fmt::format("#{:>11}  {:<18} {:>10} {:>9} {:>9} {:>10} {:>9} {:>8}\n", "bytes", "algorithm", "us",
                            "alg GB/s", "bus GB/s", "limit us", "us/limit", "wrong");
}

namespace {

std::string_view way_of(const BenchRow& row) { return row.one_kernel ? "one kernel" : to_string(row.algorithm); }

}  // namespace

std::string table_row(const BenchRow& row, const BenchOptions& options, int ranks) {
  const Bandwidth speed = bandwidth(row, options.collective, ranks);
  return fmt::format("{:>12}  {:<18} {:>10} {:>9.2f} {:>9.2f} {:>10} {:>9} {:>8}\n", row.bytes, way_of(row),
                     us_text(row.us), speed.algorithm, speed.bus, row.limit_us ? us_text(*row.limit_us) : "-",
                     row.limit_us ? fmt::format("{:.2f}", row.us / *row.limit_us) : "-",
                     row.wrong ? fmt::format("{}", *row.wrong) : "-");
}

std::string json_row(const BenchRow& row, const BenchOptions& options, int ranks) {
  const Bandwidth speed = bandwidth(row, options.collective, ranks);
  nlohmann::ordered_json json;
  json["collective"] = to_string(options.collective);
  json["transport"] = options.transport;
  json["device"] = options.device;
  json["algorithm"] = way_of(row);
  json["order"] = to_string(options.order);
  json["ranks"] = ranks;
  json["dtype"] = to_string(options.dtype);
  json["op"] = to_string(options.op);
  json["bytes"] = row.bytes;
  json["us"] = rounded(row.us);
  json["algbw_gbs"] = rounded(speed.algorithm);
  json["busbw_gbs"] = rounded(speed.bus);
  json["limit_us"] = row.limit_us ? nlohmann::ordered_json(rounded(*row.limit_us)) : nullptr;
  json["wrong"] = row.wrong ? nlohmann::ordered_json(*row.wrong) : nullptr;
  json["hash"] = fmt::format("{:016x}", row.hash);
  json["table"] = fmt::format("{:016x}", row.table);
  return json.dump() + "\n";
}

}  // namespace tutti::internal::tools
