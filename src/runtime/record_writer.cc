#include "runtime/record_writer.h"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace tutti::internal {

struct RecordWriter::State {
  explicit State(Write how) : write(std::move(how)) {}

  const Write write;
  std::mutex mutex;
  std::condition_variable written;
  std::optional<std::string> text;  // that waits
  bool is_writing = false;          // a thread is there
};

RecordWriter::RecordWriter(Write write) : state_(std::make_shared<State>(std::move(write))) {}

void RecordWriter::put(std::string text) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->text = std::move(text);
    if (std::exchange(state_->is_writing, true)) return;
  }
  try {
    std::thread([state = state_] { write_all(*state); }).detach();
  } catch (const std::system_error&) {  // there is no room for a thread
    write_all(*state_);
  }
}

void RecordWriter::write_all(State& state) {
  std::unique_lock lock(state.mutex);
  while (const auto text = std::exchange(state.text, std::nullopt)) {
    lock.unlock();
    state.write(*text);
    lock.lock();
  }
  state.is_writing = false;
  state.written.notify_all();
}

bool RecordWriter::wait(std::chrono::milliseconds limit) const {
  std::unique_lock lock(state_->mutex);
  return state_->written.wait_for(lock, limit, [this] { return !state_->is_writing; });
}

}  // namespace tutti::internal
