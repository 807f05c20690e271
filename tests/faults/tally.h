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

// Of many random faults.
struct FaultTally {
  std::vector<double> deaths, silences, with_pauses;  // seconds until the last survivor had heard
  std::vector<double> thrown;                         // and from there until its call had thrown
  std::map<std::string, int> stories, of_the_stopped;

  void print() const {
    const auto quick = std::ranges::count_if(deaths, [](double time) { return time < 0.1; });
    std::printf("deaths, until all know: %s; %zd within 0.1 s\n", spread(deaths).c_str(), quick);
    std::printf("silences, until all know: %s\n", spread(silences).c_str());
    std::printf("with a survivor that paused, until all know: %s\n", spread(with_pauses).c_str());
    std::printf("from there until all calls have thrown: %s\n", spread(thrown).c_str());
    std::printf("survivors heard: %s; stopped ranks: %s\n", counts(stories).c_str(), counts(of_the_stopped).c_str());
  }
};

}  // namespace tutti::internal
