// Files that say what happened, for people to read after it.
#pragma once

#include <string>

namespace tutti::internal {

// Puts `text` in place of directory/name, whole or not at all, readable by our user only. A link of that name is
// replaced and not followed. Returns what is wrong; empty: it is written.
std::string write_record(const std::string& directory, const std::string& name, const std::string& text);

}  // namespace tutti::internal
