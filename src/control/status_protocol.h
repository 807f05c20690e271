// How `tutti status` and a rank find each other: at a local socket of the rank. One byte comes, a report goes out
// (runtime/recorder.h), and the connection is closed.
#pragma once

#include <string>

namespace tutti::internal {

inline constexpr char kStatusBrief = 's', kStatusWhole = 'c';  // whole: with the last calls

// "tutti-status-1000-12345678-3": of our user, of a job, of a rank. Abstract.
std::string status_name(const std::string& job, int rank);
std::string status_prefix();  // what all of our user's begin with: "tutti-status-1000-"

}  // namespace tutti::internal
