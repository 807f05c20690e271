// tutti plan --explain: which algorithm a table picks, by which rule, and what each would cost.
#pragma once

#include <string>

#include "plan/candidates.h"
#include "selection/choose.h"

namespace tutti::internal::tools {

// Which algorithm the call uses, and the rule that says so: two lines.
std::string choice_in_words(const internal::Chooser& chooser, const Question& question,
                            const internal::ChoiceTable& table, const std::string& name);

// In words. name: of the table, for people.
std::string explain(const Question& question, const internal::ChoiceTable& table, const std::string& name);

// One JSON object a line: every algorithm, then the choice.
std::string explain_json(const Question& question, const internal::ChoiceTable& table);

}  // namespace tutti::internal::tools
