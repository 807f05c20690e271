#include "run/output_writer.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

namespace tutti::internal::tools {
namespace {

constexpr std::size_t kMaxAtOnce = 16384;  // so that written() tells a slow reader from none

// As write(), but waits where another process has made the file non-blocking.
ssize_t write_some(int fd, std::string_view text) {
  while (true) {
    const ssize_t count = write(fd, text.data(), std::min(text.size(), kMaxAtOnce));
    if (count >= 0) return count;
    if (errno == EAGAIN) {
      pollfd room{fd, POLLOUT, 0};
      poll(&room, 1, -1);
    } else if (errno != EINTR) {
      return count;
    }
  }
}

}  // namespace

// Outlives the writer while the thread is in write().
struct OutputWriter::State {
  explicit State(int target) : fd(target), event(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    if (event < 0) throw std::system_error(errno, std::generic_category());
  }
  ~State() { close(event); }

  const int fd;
  const int event;
  std::mutex mutex;
  std::condition_variable changed;
  std::string text;         // put and not yet taken by the thread
  std::size_t waiting = 0;  // text.size() and what the thread has yet to write of what it took
  std::uint64_t written = 0;
  int problem = 0;
  std::uint64_t drops = 0;  // calls of drop(): the thread forgets what it took before the last
  bool ending = false;
};

OutputWriter::OutputWriter(int fd) : state_(std::make_shared<State>(fd)) {
  std::thread([state = state_] { write_all(*state); }).detach();
}

OutputWriter::~OutputWriter() {
  const std::lock_guard lock(state_->mutex);
  state_->ending = true;
  state_->changed.notify_one();
}

void OutputWriter::write_all(State& state) {
  std::string taken;
  std::unique_lock lock(state.mutex);
  while (true) {
    state.changed.wait(lock, [&] { return !state.text.empty() || state.ending; });
    if (state.text.empty()) return;
    taken.clear();
    taken.swap(state.text);
    const std::uint64_t drops = state.drops;
    for (std::string_view left = taken; !left.empty();) {
      lock.unlock();
      const ssize_t count = write_some(state.fd, left);
      const int problem = count < 0 ? errno : 0;
      lock.lock();
      if (state.drops != drops) break;
      if (problem != 0) {
        state.problem = problem;
        state.text.clear();
        state.waiting = 0;
        break;
      }
      left.remove_prefix(static_cast<std::size_t>(count));
      state.waiting -= static_cast<std::size_t>(count);
      state.written += static_cast<std::size_t>(count);
    }
    eventfd_write(state.event, 1);
  }
}

void OutputWriter::put(std::string_view text) {
  const std::lock_guard lock(state_->mutex);
  if (state_->problem != 0) return;
  state_->text += text;
  state_->waiting += text.size();
  state_->changed.notify_one();
}

void OutputWriter::drop() {
  const std::lock_guard lock(state_->mutex);
  ++state_->drops;
  state_->text.clear();
  state_->waiting = 0;
}

std::size_t OutputWriter::waiting() const {
  const std::lock_guard lock(state_->mutex);
  return state_->waiting;
}

std::uint64_t OutputWriter::written() const {
  const std::lock_guard lock(state_->mutex);
  return state_->written;
}

int OutputWriter::problem() const {
  const std::lock_guard lock(state_->mutex);
  return state_->problem;
}

int OutputWriter::event() const { return state_->event; }

void OutputWriter::heed() {
  eventfd_t count = 0;
  eventfd_read(state_->event, &count);
}

void say_at_the_end(std::string_view text) try {
  OutputWriter writer(STDERR_FILENO);
  writer.put(text);
  pollfd written{writer.event(), POLLIN, 0};
  poll(&written, 1, 2000);
} catch (const std::system_error&) {  // no thread
  pollfd room{STDERR_FILENO, POLLOUT, 0};
  if (poll(&room, 1, 2000) != 1) return;
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace tutti::internal::tools
