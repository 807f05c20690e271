// What `tutti bench reduction` prints.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "bench/figures.h"
#include "bench/reduce.h"

namespace tutti::internal::tools {
namespace {

using nlohmann::ordered_json;

double gbs(const ReduceRow& row, const BenchOptions& options, double us) {
  return us > 0 ? static_cast<double>(traffic_bytes(row, options)) / us / 1e3 : 0;
}
// Both move as many bytes, so it is that of their times.
double percent(const ReduceRow& row) { return row.us > 0 ? 100 * *row.limit_us / row.us : 0; }

}  // namespace

std::string reduce_head(const BenchOptions& options, const std::optional<cuda::Device>& gpu) {
  const std::size_t n = sources_of(options);
  std::string text =
      fmt::format("# tutti bench reduction: {} source{}, {} {} in canonical order, on {}\n", n, n == 1 ? "" : "s",
                  to_string(options.dtype), to_string(options.op),
                  gpu ? fmt::format("GPU {}, {}, PCI {}", gpu->index, gpu->name, gpu->pci) : "one thread of the CPU");
  text += fmt::format("# us: one of many calls back to back, {}, median of {} rounds\n",
                      gpu ? "by the GPU's clock" : "after one that is not counted", options.rounds);
  text += fmt::format("# GB/s: bytes read and written, {} x bytes, over the time; 1 GB = 10^9 bytes\n", n + 1);
  text += fmt::format(
      "# limit: {}, reads and writes as many bytes in all, in turn with these\n",
      gpu ? "a copy from the GPU's memory to its memory (cudaMemcpyAsync)" : "a copy on the same thread (copy_bytes)");
  text += "#        it writes half of them, and they fewer: where writing costs more, they may pass 100 %\n";
  text += fmt::format("# wrong: elements that differ in any bit from {}\n#\n",
                      gpu ? "the CPU's reduce() of the same inputs" : "a scalar evaluation of the canonical order");
  return text + fmt::format("#{:>12} {:>10} {:>9} {:>10} {:>11} {:>10} {:>9}\n", "bytes", "us", "GB/s", "limit us",
                            "limit GB/s", "% of limit", "wrong");
}

std::string table_row(const ReduceRow& row, const BenchOptions& options) {
  const auto of_limit = [&](auto text) { return row.limit_us ? text() : std::string("-"); };
  return fmt::format("{:>13} {:>10} {:>9.2f} {:>10} {:>11} {:>10} {:>9}\n", row.bytes, us_text(row.us),
                     gbs(row, options, row.us), of_limit([&] { return us_text(*row.limit_us); }),
                     of_limit([&] { return fmt::format("{:.2f}", gbs(row, options, *row.limit_us)); }),
                     of_limit([&] { return fmt::format("{:.1f}", percent(row)); }), row.wrong);
}

std::string json_row(const ReduceRow& row, const BenchOptions& options, const std::optional<cuda::Device>& gpu) {
  const auto of_limit = [&](auto figure) { return row.limit_us ? ordered_json(rounded(figure())) : nullptr; };
  ordered_json json;
  json["collective"] = "reduction";
  json["device"] = options.device;
  json["gpu"] = gpu ? ordered_json(gpu->name) : nullptr;
  json["sources"] = sources_of(options);
  json["dtype"] = to_string(options.dtype);
  json["op"] = to_string(options.op);
  json["bytes"] = row.bytes;
  json["us"] = rounded(row.us);
  json["gbs"] = rounded(gbs(row, options, row.us));
  json["limit_us"] = of_limit([&] { return *row.limit_us; });
  json["limit_gbs"] = of_limit([&] { return gbs(row, options, *row.limit_us); });
  json["percent"] = of_limit([&] { return percent(row); });
  json["wrong"] = row.wrong;
  return json.dump() + "\n";
}

}  // namespace tutti::internal::tools
