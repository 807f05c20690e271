// What a rank says of itself, as the library's flight recorder writes it (runtime/recorder.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tutti::internal::tools {

struct CallReport {
  std::int64_t number = 0;
  std::string kind;  // "all_reduce (float32 x 2, max)"
  std::int64_t bytes = 0, start_us = 0;
  std::optional<std::int64_t> end_us;  // none: it is not over

  std::string name() const;  // "all_reduce #5 (float32 x 2, max)"
};

struct WaitReport {
  int rank = -1;  // of the job
  int step = -1;
  bool takes = false;  // that rank is to take what was sent to it; else to send
  std::int64_t since_us = 0;
};

struct CommunicatorReport {
  std::string id, name;
  std::vector<int> ranks;  // of the job
  std::optional<CallReport> last;
  std::optional<WaitReport> waits_for;
  std::string error_text;
  std::vector<CallReport> calls;  // where the whole was asked for

  bool is_in_call() const { return last && !last->end_us; }
};

struct RankReport {
  std::string job;
  int rank = -1, size = 0;
  std::int64_t pid = 0, time_us = 0;
  std::string why_none;  // not empty: it says nothing, and why
  std::vector<CommunicatorReport> communicators;
  std::string text;  // as it came

  const CommunicatorReport* find(const std::string& id) const;
};

// Throws std::runtime_error where it is no such report.
RankReport parse_report(const std::string& text);

}  // namespace tutti::internal::tools
