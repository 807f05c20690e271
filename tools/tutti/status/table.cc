#include "status/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "status/verdict.h"

namespace tutti::internal::tools {
namespace {

using Row = std::array<std::string, 7>;

std::string in_columns(const std::vector<Row>& rows) {
  Row::size_type last = rows.front().size() - 1;
  std::array<std::size_t, 7> width{};
  for (const Row& row : rows)
    for (std::size_t i = 0; i <= last; ++i) width[i] = std::max(width[i], row[i].size());
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i <= last; ++i) line += fmt::format("{:<{}}  ", row[i], width[i]);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

bool is_worth_a_row(const CommunicatorReport& communicator) {
  const bool is_lane = communicator.name.find(" to ") != std::string::npos;
  return !is_lane || communicator.is_in_call();
}

Row row_of(const RankReport& report, const CommunicatorReport& communicator) {
  Row row{
      fmt::format("{}", report.rank), fmt::format("{}", report.pid), communicator.name, "no call yet", "-", "-", "-"};
  if (!communicator.last) return row;
  const CallReport& call = *communicator.last;
  const auto since = [&](std::int64_t us) { return age(report.time_us - us); };
  row[3] = (communicator.is_in_call() ? "" : "after ") + call.name();
  row[6] = since(call.end_us.value_or(call.start_us));
  if (!communicator.is_in_call() || !communicator.waits_for) return row;
  const WaitReport& wait = *communicator.waits_for;
  row[4] = fmt::format("{}", wait.step);
  row[5] = fmt::format("rank {} to {}", wait.rank, wait.takes ? "take" : "send");
  row[6] = since(wait.since_us);
  return row;
}

}  // namespace

std::string table_of(const std::vector<RankReport>& reports) {
  std::vector<Row> rows{{"rank", "pid", "communicator", "call", "step", "waits for", "since"}};
  std::string failures;
  for (const RankReport& report : reports) {
    const std::string rank = fmt::format("{}", report.rank);
    if (!report.why_none.empty()) {
      rows.push_back({rank, report.pid > 0 ? fmt::format("{}", report.pid) : "-", "-",
                      "does not answer: " + report.why_none, "-", "-", "-"});
      continue;
    }
    if (report.communicators.empty())
      rows.push_back({rank, fmt::format("{}", report.pid), "-", "no communicator", "-", "-", "-"});
    for (const CommunicatorReport& communicator : report.communicators) {
      if (is_worth_a_row(communicator)) rows.push_back(row_of(report, communicator));
      if (!communicator.error_text.empty())
        failures +=
            fmt::format("rank {}: {} has failed: {}\n", report.rank, communicator.name, communicator.error_text);
    }
  }
  return in_columns(rows) + failures;
}

}  // namespace tutti::internal::tools
