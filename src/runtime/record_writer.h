// Writes records on a thread of its own: a directory of a network that hangs must not hold up the control thread, as
// the rank would look dead to the others.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace tutti::internal {

// Thread-safe. A thread that hangs in a write outlives the object.
class RecordWriter {
 public:
  using Write = std::function<std::string(const std::string& text)>;  // returns what is wrong; empty: nothing
  using Complain = std::function<void(const std::string& wrong)>;     // throws nothing
  RecordWriter(Write write, Complain complain);
  ~RecordWriter();  // complains no more, and waits for no write

  // Does not wait. If several texts wait to be written, the last one is.
  void put(std::string text);
  // Waits until all that was put is written, at most so long. Whether it is.
  bool wait(std::chrono::milliseconds limit) const;

 private:
  struct State;
  static void write_all(State& state) noexcept;

  const std::shared_ptr<State> state_;
};

}  // namespace tutti::internal
