// What the guardian writes: its own sentences and, where they are to be tagged, the ranks' lines, each with its rank in
// front: "[2] loss 0.25".
//
// Ranks write into pipes. Nothing here blocks, and memory is bounded: where a reader lags, the pipes are left full, so
// the ranks wait as they would if they wrote to it themselves. How output is cut:
//
//   a line               is written when it ends, by \n or, as progress bars do, by \r
//   a line of 64 KiB     is written and ended there; what follows is a line of its own
//   an unfinished line   is written after a tenth of a second of silence, and goes on where it was left, unless the
//                        line of another rank came between; it is ended when the rank closes its end
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "run/output_writer.h"

namespace tutti::internal::tools {

class RankOutput {
 public:
  // Throws std::system_error where the system has no thread or no descriptor left.
  RankOutput(const std::string& name, bool tagged);
  ~RankOutput();

  // Writes "name: sentence" to stderr, as a line of its own.
  void say(std::string_view sentence);

  // Makes a pipe whose lines will be written to `target` (1 or 2) tagged with `rank`. Returns its writing end, which is
  // the caller's; -1 with errno set when the system has none left. Requires `tagged`.
  int add(int rank, int target);

  // What to wait for: adds to `fds`, shortens `timeout_ms` (-1: without end). Then hand what was added, polled, to
  // forward(), which reads and passes on what there is.
  void await(std::vector<pollfd>& fds, int& timeout_ms) const;
  void forward(std::span<const pollfd> polled);

  bool has_all_written();                      // all pipes have ended, and their readers have what came of them
  std::uint64_t written() const;               // bytes, since the start: tells a slow reader from none
  bool has_failed() const { return failed_; }  // a write has, and not because the reader has left
  void drop();                                 // gives up what its readers do not read

 private:
  using Clock = std::chrono::steady_clock;
  struct Target {
    explicit Target(int fd) : writer(fd) {}
    OutputWriter writer;
    int open = 0;           // the number of the stream whose line has begun and not ended; 0: none
    bool returned = false;  // that line ended in \r: it is to be overwritten
    bool given_up = false;
  };
  struct Stream {
    int number;  // from 1
    int fd;
    Target* target;
    std::string tag;
    std::string line;           // what has come of it and is not yet written
    std::size_t written = 0;    // bytes of the same line that are, while it is the target's open one
    bool after_return = false;  // the last byte was \r: a \n ends the same line
    Clock::time_point last{};   // when something came, or it last had to wait for its reader
  };
  bool read_from(Stream& stream);  // false: it has ended
  static void take(Stream& stream, std::string_view text);
  static void show(Stream& stream, std::string_view end);
  static void finish(Stream& stream);
  static void end_line(Target& target);
  void look_at(Target& target);
  void close_streams_of(const Target& target);

  const std::string name_;
  std::vector<std::unique_ptr<Target>> targets_;
  Target* out_ = nullptr;  // where stdout and stderr are one file, so are these
  Target* err_ = nullptr;
  std::vector<Stream> streams_;
  int last_number_ = 0;
  bool failed_ = false;
};

}  // namespace tutti::internal::tools
