#include "tune/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "bench/limit.h"
#include "selection/choose_text.h"

namespace tutti::internal::tools {
namespace {

const std::pair<std::string_view, std::string_view> kSections[] = {
    {"shm", "# A message over shared memory: bytes, us until it has arrived, us that it keeps each end busy."},
    {"tcp", "# The same over TCP, on the loopback."},
    {"reduce", "# Combining: bytes of all sources together, us."},
    {"cores", "# Cores of this host; where ranks outnumber them, us from one that waits to the next."},
    {"rule",
     "# The first that holds decides; * is any number. Of an order, canonical keeps it, any is for calls that allow "
     "any."},
};
constexpr std::string_view kColumns =
    "#       collective     ranks  hosts   bytes  order      algorithm          chunk";

// The median ratio of predicted and measured, and the median relative error that is left without it.
std::pair<double, double> common_factor(const std::vector<Check>& checks, const std::string& transport) {
  std::vector<double> ratios, errors;
  for (const Check& check : checks)
    if (check.transport == transport) ratios.push_back(check.predicted_us / std::max(check.measured_us, 1e-3));
  if (ratios.empty()) return {0, 0};
  const double factor = median(ratios);
  for (const double ratio : ratios) errors.push_back(std::abs(ratio / factor - 1));
  return {factor, median(errors)};
}

}  // namespace

std::string annotated(const internal::ChoiceTable& table, const std::vector<std::string>& header) {
  std::istringstream lines(internal::to_text(table));
  std::string line, text, section;
  std::getline(lines, line);
  text = line + "\n";
  for (const std::string& comment : header) text += "# " + comment + "\n";
  while (std::getline(lines, line)) {
    const std::string kind = line.substr(0, line.find(' '));
    for (const auto& [name, comment] : kSections)
      if (kind == name && kind != section) text += fmt::format("\n{}\n", comment);
    if (kind == "rule" && kind != section) text += fmt::format("{}\n", kColumns);
    section = kind;
    text += line + "\n";
  }
  return text;
}

std::string check_text(const std::vector<Check>& checks, int ranks) {
  std::string text = fmt::format(
      "# predicted against measured, {} ranks; * is what the table picks\n"
      "#   {:<14} {:<18} {:<4} {:>8} {:>13} {:>12} {:>7}\n",
      ranks, "collective", "algorithm", "over", "bytes", "predicted us", "measured us", "ratio");
  for (const Check& check : checks)
    text += fmt::format("# {} {:<14} {:<18} {:<4} {:>8} {:>13.2f} {:>12.2f} {:>7.2f}\n", check.chosen ? '*' : ' ',
                        to_string(check.entry->collective), to_string(check.entry->algorithm), check.transport,
                        internal::size_text(check.bytes), check.predicted_us, check.measured_us,
                        check.predicted_us / std::max(check.measured_us, 1e-3));
  text += fmt::format("# median relative error {:.0f} %\n", 100 * median_error(checks));
  for (const char* transport : {"shm", "tcp"}) {
    const auto [factor, error] = common_factor(checks, transport);
    if (factor > 0)
      text += fmt::format(
          "#   {}: predicted {:.2f} times what was measured (median), as when the machine has changed its speed in "
          "between; but for that {:.0f} %\n",
          transport, factor, 100 * error);
  }
  return text;
}

std::string check_json(const std::vector<Check>& checks, int ranks) {
  std::string text;
  for (const Check& check : checks) {
    const nlohmann::ordered_json object{{"collective", to_string(check.entry->collective)},
                                        {"algorithm", to_string(check.entry->algorithm)},
                                        {"transport", check.transport},
                                        {"ranks", ranks},
                                        {"bytes", check.bytes},
                                        {"chosen", check.chosen},
                                        {"predicted_us", check.predicted_us},
                                        {"measured_us", check.measured_us}};
    text += object.dump() + "\n";
  }
  return text;
}

}  // namespace tutti::internal::tools
