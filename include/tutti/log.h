// What the library says of its own accord. Errors are thrown and not logged.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace tutti {

enum class LogLevel : std::uint8_t {
  warn,   // something that a person should know: a wait that is long, a stranger at the port, a lost wish
  info,   // also each decision of joining, and why: transports, address, processors, table
  trace,  // also each new kind of call, with the algorithm that it uses
};

struct LogLine {
  LogLevel level;
  int rank;               // of the job, that says it
  std::string_view text;  // one line, without its end; valid during the call alone. Never a secret
};

// Called by the thread that has something to say, which may be one of the library's own, and by several at once, until
// the rank has left its job: in exit() too, where the job has not been left before. So what it uses must live as long.
// It is copied. It must not block, as other ranks may wait for that thread, nor call the library. What it throws is
// dropped.
using LogSink = std::function<void(const LogLine&)>;

}  // namespace tutti
