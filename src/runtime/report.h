// What the control thread says to the user.
#pragma once

#include <string>

namespace tutti::runtime {

// One line on stderr: "tutti: rank 2: ...". Never waits for whoever reads it: a rank whose control thread stood still
// would look dead to the others. A line that finds no room is dropped, and the next one says how many were.
void report(int rank, const std::string& line);

}  // namespace tutti::runtime
