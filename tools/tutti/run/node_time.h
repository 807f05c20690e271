// Times of the connections between launchers. A launcher that says nothing for as long as a rank may (3 times the
// connect timeout) is lost.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "base/seconds.h"
#include "tutti/settings.h"

namespace tutti::internal::tools {

// Between two pings: several fit into the silence.
inline std::chrono::milliseconds tick_of(const Settings& settings) {
  return std::min(std::chrono::milliseconds(1000), settings.connect_timeout / 2);
}
// If a tick is so late that this launcher was stopped itself, that time does not count against the others.
inline std::chrono::steady_clock::duration stopped_for(const Settings& settings,
                                                       std::chrono::steady_clock::duration late) {
  return late > settings.connect_timeout ? late : std::chrono::steady_clock::duration(0);
}

inline std::chrono::milliseconds silence_of(const Settings& settings) { return 3 * settings.connect_timeout; }
inline std::string silent_for(std::chrono::milliseconds silence) {
  return "its launcher was silent for " + internal::in_seconds(silence);
}

inline std::string whole_seconds(std::chrono::steady_clock::duration time) {
  return internal::in_seconds(std::chrono::duration_cast<std::chrono::seconds>(time));
}

// Waiting ends at `then`, at the latest. timeout_ms: poll()'s, -1 for without end.
inline void shorten(int& timeout_ms, std::chrono::steady_clock::time_point now,
                    std::chrono::steady_clock::time_point then) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(then - now).count();
  const int ms = static_cast<int>(std::clamp<long long>(left, 0, 3'600'000));
  timeout_ms = timeout_ms < 0 ? ms : std::min(timeout_ms, ms);
}

}  // namespace tutti::internal::tools
