#include "plan/list.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "collectives/catalogue.h"

namespace tutti::internal::tools {
namespace {

constexpr const char* kRow = "{:<14} {:<18} {:<9} {:<6} {:<9} {:<17} {:<16} {}\n";

std::string_view yes_or_no(bool is) { return is ? "yes" : "no"; }

}  // namespace

std::string list_algorithms(std::optional<Collective> collective) {
  std::string text =
      fmt::format(kRow, "# collective", "algorithm", "canonical", "leaves", "pipelined", "messages", "bytes", "rounds");
  for (const AlgorithmEntry& entry : catalogue())
    if (!collective || entry.collective == *collective)
      text += fmt::format(kRow, to_string(entry.collective), to_string(entry.algorithm), yes_or_no(entry.canonical),
                          entry.several_leaves ? "any" : "1", yes_or_no(entry.pipelined), entry.messages, entry.bytes,
                          entry.rounds);
  text +=
      "# canonical: combines in the canonical order, whatever the number of ranks. leaves: inputs that a rank may "
      "hold.\n"
      "# pipelined: in c chunks; otherwise c = 1. Of n ranks on one host: messages of all together; bytes that the\n"
      "# busiest sends, M being those of the message; rounds for one chunk. log n is rounded up.\n";
  return text;
}

std::string list_algorithms_json(std::optional<Collective> collective) {
  std::string text;
  for (const AlgorithmEntry& entry : catalogue()) {
    if (collective && entry.collective != *collective) continue;
    const nlohmann::ordered_json object{{"collective", to_string(entry.collective)},
                                        {"algorithm", to_string(entry.algorithm)},
                                        {"idea", entry.idea},
                                        {"canonical", entry.canonical},
                                        {"several_leaves", entry.several_leaves},
                                        {"pipelined", entry.pipelined},
                                        {"messages", entry.messages},
                                        {"bytes", entry.bytes},
                                        {"rounds", entry.rounds},
                                        {"between_hosts", entry.between_hosts}};
    text += object.dump() + "\n";
  }
  return text;
}

}  // namespace tutti::internal::tools
