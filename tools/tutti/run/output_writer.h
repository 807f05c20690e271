// Writes to a file that may block, and never blocks who has something to write.
//
// A thread does it, which may stay in write() for as long as nobody reads. To ask before does not help: poll() promises
// room in a pipe only while no other process writes to it, and on a terminal or a socket it promises one byte. To make
// the file non-blocking would do so for all processes that share it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace tutti::internal::tools {

class OutputWriter {
 public:
  // Throws std::system_error where the system has no thread or no descriptor left.
  explicit OutputWriter(int fd);
  // The thread writes what is left, however long that takes: it ends with the process at the latest.
  ~OutputWriter();
  OutputWriter(const OutputWriter&) = delete;
  OutputWriter& operator=(const OutputWriter&) = delete;

  // Takes any amount: who has much to write asks waiting() before. Drops the text once a write has failed.
  void put(std::string_view text);
  // Forgets what waits, all but the few bytes that a write may still hold.
  void drop();

  std::size_t waiting() const;    // bytes that were put and are not yet written
  std::uint64_t written() const;  // bytes, since the start
  int problem() const;            // errno of the write that failed; 0: none did

  // Readable when some of what waited has been written, or a write has failed, since the last call of heed().
  int event() const;
  void heed();

 private:
  struct State;
  static void write_all(State& state);
  std::shared_ptr<State> state_;
};

// Writes a last sentence to stderr, and waits two seconds at most for somebody to read it.
void say_at_the_end(std::string_view text);

}  // namespace tutti::internal::tools
