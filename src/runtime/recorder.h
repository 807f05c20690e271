// The flight recorder of a rank: what its communicators have called, and for whom they wait.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/log.h"
#include "control/control.h"
#include "runtime/members.h"
#include "runtime/record_writer.h"
#include "tutti/settings.h"

namespace tutti::internal {

// Gives it as JSON (docs/guide/status.md says what is in it), and writes that where Settings::dump_dir says.
// Thread-safe. The communicators' histories are read as they are written, so this holds up no call.
class Recorder {
 public:
  Recorder(const Settings& settings, const Log& log);
  ~Recorder();  // waits as wait_for_dump() does

  // The job has this number.
  void begin(const std::string& job);

  // A communicator, or a lane of the communicator `whole`.
  void add(std::uint64_t id, std::uint64_t whole, const Members& members, std::shared_ptr<const CallHistory> history);
  void remove(std::uint64_t id);

  // A communicator fails for the first time: that is written. Not after close(), when the process exits and so fails
  // all of them.
  void failed(std::uint64_t whole, const std::string& why);
  void close();

  // All of the recorder, or without the last calls.
  std::string report(bool with_calls) const;
  void dump() noexcept;  // on a thread of its own
  // Blocks until all is written. If the directory hangs: for a second, and not again while it does.
  void wait_for_dump() const;

 private:
  struct Entry {
    std::uint64_t whole = 0;
    Members members;
    std::shared_ptr<const CallHistory> history;
  };
  std::shared_ptr<RecordWriter> writer() const;
  void put_dump() noexcept;

  const std::string directory_;
  const int size_;
  const Log& log_;
  std::mutex dumping_;        // one report at a time; taken before the next one
  mutable std::mutex mutex_;  // guards what follows
  std::string job_;
  std::map<std::uint64_t, Entry> entries_;
  std::map<std::uint64_t, std::string> failures_;  // by communicator
  bool is_closed_ = false;
  std::shared_ptr<RecordWriter> writer_;    // once the job has its number, where there is a directory
  mutable std::atomic<bool> hangs_{false};  // the directory
};

}  // namespace tutti::internal
