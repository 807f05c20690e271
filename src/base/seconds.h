// Times as messages say them.
#pragma once

#include <chrono>
#include <string>

namespace tutti::internal {

// "5 s", "0.25 s".
std::string in_seconds(std::chrono::milliseconds time);

}  // namespace tutti::internal
