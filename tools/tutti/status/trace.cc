#include "status/trace.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace tutti::internal::tools {
namespace {

using nlohmann::json;

json name_for(const char* what, int rank, std::size_t thread, const std::string& name) {
  return {{"ph", "M"}, {"name", what}, {"pid", rank}, {"tid", thread}, {"args", {{"name", name}}}};
}

}  // namespace

std::string trace_of(const std::vector<RankReport>& reports) {
  json events = json::array();
  for (const RankReport& report : reports) {
    if (!report.why_none.empty()) continue;
    events.push_back(name_for("process_name", report.rank, 0, fmt::format("rank {}", report.rank)));
    events.push_back({{"ph", "M"},
                      {"name", "process_sort_index"},
                      {"pid", report.rank},
                      {"tid", 0},
                      {"args", {{"sort_index", report.rank}}}});
    for (std::size_t i = 0; i < report.communicators.size(); ++i) {
      const CommunicatorReport& communicator = report.communicators[i];
      events.push_back(name_for("thread_name", report.rank, i, communicator.name));
      for (const CallReport& call : communicator.calls)
        events.push_back(
            {{"ph", "X"},
             {"name", call.kind.substr(0, call.kind.find(" ("))},
             {"cat", communicator.name},
             {"pid", report.rank},
             {"tid", i},
             {"ts", call.start_us},
             {"dur", call.end_us.value_or(report.time_us) - call.start_us},
             {"args", {{"call", call.name()}, {"bytes", call.bytes}, {"completed", call.end_us.has_value()}}}});
    }
  }
  return json{{"traceEvents", events}, {"displayTimeUnit", "ms"}}.dump() + "\n";
}

}  // namespace tutti::internal::tools
