// tutti plan --list: every algorithm, and what its file claims of it.
#pragma once

#include <optional>
#include <string>

#include "tutti/types.h"

namespace tutti::internal::tools {

// A line each, of one collective or of all; as JSON, an object a line.
std::string list_algorithms(std::optional<Collective> collective);
std::string list_algorithms_json(std::optional<Collective> collective);

}  // namespace tutti::internal::tools
