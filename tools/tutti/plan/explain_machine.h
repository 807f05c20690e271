// tutti plan --explain --topology: what changes for the ranks of one machine by how its caches, memory nodes and
// packages lie.
#pragma once

#include <string>

#include "plan/candidates.h"
#include "plan/placed.h"
#include "selection/choose.h"

namespace tutti::internal::tools {

// In words. name: of the table, for people. question: of one host.
std::string explain_machine(const Question& question, const PlacedRanks& placed, const internal::ChoiceTable& table,
                            const std::string& name);

// One JSON object a line: every algorithm, then the machine and the choice.
std::string explain_machine_json(const Question& question, const PlacedRanks& placed,
                                 const internal::ChoiceTable& table, const std::string& name);

}  // namespace tutti::internal::tools
