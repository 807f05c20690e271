// Where the library says what it says of its own accord.
#pragma once

#include <string>

#include "tutti/log.h"
#include "tutti/settings.h"

namespace tutti::internal {

// The voice of one rank. Goes to Settings::log_sink or, where there is none, to stderr: "tutti: rank 2: ...". Never
// waits for whoever reads stderr: a rank whose control thread stood still would look dead to the others. A line that
// finds no room is dropped, and the next one says how many were. Thread-safe; throws nothing.
class Log {
 public:
  explicit Log(const Settings& settings) : rank_(settings.rank), level_(settings.log_level), sink_(settings.log_sink) {}

  void warn(const std::string& text) const noexcept { say(LogLevel::warn, text); }
  // `text` makes the words; it is called only where somebody wants them.
  template <class Text>
  void info(const Text& text) const noexcept {
    make(LogLevel::info, text);
  }
  template <class Text>
  void trace(const Text& text) const noexcept {
    make(LogLevel::trace, text);
  }
  int rank() const { return rank_; }

 private:
  template <class Text>
  void make(LogLevel level, const Text& text) const noexcept {
    if (level_ < level) return;
    try {
      say(level, text());
    } catch (...) {  // no memory for the words
    }
  }
  void say(LogLevel level, const std::string& text) const noexcept;

  const int rank_;
  const LogLevel level_;
  const LogSink sink_;
};

}  // namespace tutti::internal
