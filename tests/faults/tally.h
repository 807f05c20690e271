// How the figures of many faults are printed.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace tutti::internal {

inline int number_from(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);
  return text != nullptr ? std::atoi(text) : otherwise;
}

inline double seconds(std::chrono::steady_clock::duration time) { return std::chrono::duration<double>(time).count(); }

inline std::string spread(std::vector<double> seconds) {
  if (seconds.empty()) return "none";
  std::ranges::sort(seconds);
  const auto at = [&](double part) { return seconds[static_cast<std::size_t>(part * (seconds.size() - 1.0))]; };
  char text[200];
  std::snprintf(text, sizeof text, "%zu: median %.3f s, 90 %% within %.3f s, 99 %% within %.3f s, the longest %.3f s",
                seconds.size(), at(0.5), at(0.9), at(0.99), at(1));
  return text;
}

inline std::string counts(const std::map<std::string, int>& list) {
  std::string text;
  for (const auto& [what, times] : list) text += (text.empty() ? "" : ", ") + std::to_string(times) + " " + what;
  return text.empty() ? "none" : text;
}

}  // namespace tutti::internal
