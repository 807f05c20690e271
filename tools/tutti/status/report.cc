#include "status/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace tutti::internal::tools {
namespace {

using nlohmann::json;

CallReport parse_call(const json& from) {
  CallReport call{from.at("number"), from.at("kind"), from.at("bytes"), from.at("start_us"), std::nullopt};
  if (!from.at("end_us").is_null()) call.end_us = from["end_us"].get<std::int64_t>();
  return call;
}

CommunicatorReport parse_communicator(const json& from) {
  CommunicatorReport communicator;
  communicator.id = from.at("id");
  communicator.name = from.at("name");
  communicator.ranks = from.at("ranks").get<std::vector<int>>();
  if (!from.at("last").is_null()) communicator.last = parse_call(from["last"]);
  if (const json& wait = from.at("waits_for"); !wait.is_null())
    communicator.waits_for = {wait.at("rank"), wait.at("step"), wait.at("takes"), wait.at("since_us")};
  if (!from.at("error").is_null()) communicator.error_text = from["error"];
  if (from.contains("calls"))
    for (const json& call : from["calls"]) communicator.calls.push_back(parse_call(call));
  return communicator;
}

}  // namespace

std::string CallReport::name() const {
  const std::size_t details = std::min(kind.find(" ("), kind.size());
  return kind.substr(0, details) + " #" + std::to_string(number) + kind.substr(details);
}

const CommunicatorReport* RankReport::find(const std::string& id) const {
  const auto found = std::ranges::find(communicators, id, &CommunicatorReport::id);
  return found == communicators.end() ? nullptr : &*found;
}

RankReport parse_report(const std::string& text) try {
  const json from = json::parse(text);
  if (from.at("format") != 1) throw std::runtime_error("it is of another version of tutti");
  RankReport report;
  report.job = from.at("job");
  report.rank = from.at("rank");
  report.size = from.at("size");
  report.pid = from.at("pid");
  report.time_us = from.at("time_us");
  for (const json& communicator : from.at("communicators"))
    report.communicators.push_back(parse_communicator(communicator));
  report.text = text;
  return report;
} catch (const json::exception&) {
  throw std::runtime_error("it is no report of a rank");
}

}  // namespace tutti::internal::tools
