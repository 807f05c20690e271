/// @file
/// What the library says without being asked. The library throws errors; it does not log them.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace tutti {

/// How much the library says. Each level includes the ones before it.
enum class LogLevel : std::uint8_t {
  warn,   ///< what a person should know: a long wait, a stranger at the port, a setting that had no effect
  info,   ///< also each decision of joining, and why: transports, address, processors, table
  trace,  ///< also each new kind of call, with the algorithm that it uses
};

/// One line that the library says.
struct LogLine {
  LogLevel level;         ///< the least Settings::log_level that shows the line
  int rank;               ///< the rank of the job that says it
  std::string_view text;  ///< one line without its end, valid during the call only; never a secret
};

/// Takes the lines of a rank, in place of stderr. The library copies the function.
///
/// Threads: the thread that has something to say calls it. That may be a thread of the library, and several threads may
/// call it at once. The calls end when the rank has left its job; if it has not left before, in exit(). What the
/// function uses must live until then.
///
/// The function must not block, because other ranks may wait for the thread, and must not call the library. The library
/// drops what it throws.
using LogSink = std::function<void(const LogLine&)>;

}  // namespace tutti
