#include "runtime/record_writer.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace tutti::internal {

struct RecordWriter::State {
  const Write write;
  const Complain complain;
  std::mutex mutex;
  std::condition_variable written;
  std::optional<std::string> text;  // that waits
  bool is_writing = false;          // a thread is there
  bool is_alone = false;            // the writer is gone
};

RecordWriter::RecordWriter(Write write, Complain complain)
    : state_(std::make_shared<State>(std::move(write), std::move(complain))) {}

RecordWriter::~RecordWriter() {
  const std::lock_guard lock(state_->mutex);
  state_->is_alone = true;
}

void RecordWriter::put(std::string text) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->text = std::move(text);
    if (std::exchange(state_->is_writing, true)) return;
  }
  try {
    std::thread([state = state_] { write_all(*state); }).detach();
  } catch (const std::exception& failure) {  // there is no room for a thread
    const std::lock_guard lock(state_->mutex);
    state_->text.reset();
    state_->is_writing = false;
    state_->complain(std::string("cannot write a dump: ") + failure.what());
  }
}

void RecordWriter::write_all(State& state) noexcept {
  std::unique_lock lock(state.mutex);
  while (const auto text = std::exchange(state.text, std::nullopt)) {
    lock.unlock();
    std::string wrong;
    try {
      wrong = state.write(*text);
    } catch (const std::exception&) {  // no memory for it
    }
    lock.lock();
    if (!wrong.empty() && !state.is_alone) state.complain(wrong);
  }
  state.is_writing = false;
  state.written.notify_all();
}

bool RecordWriter::wait(std::chrono::milliseconds limit) const {
  std::unique_lock lock(state_->mutex);
  return state_->written.wait_for(lock, limit, [this] { return !state_->is_writing; });
}

}  // namespace tutti::internal
