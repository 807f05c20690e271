// Several ranks in one process, and what they hear.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "control/join_job.h"
#include "control/validate.h"
#include "net/free_port.h"

namespace tutti::internal::testing_ranks {

using std::chrono::milliseconds;

// What join() gave on one rank.
struct Outcome {
  std::unique_ptr<Control> control;
  std::optional<Error> error;
  std::string message() const { return error ? error->what() : ""; }
  bool says(const std::string& part) const { return message().find(part) != std::string::npos; }
};

// As a communicator does.
inline std::unique_ptr<Control> try_to_join(const Settings& settings, Store* store) {
  const StoreJoin number = store != nullptr ? count_join(*store, settings.rank) : StoreJoin{};
  validate(settings);
  return join_job(settings, store, number);
}

inline Outcome join(const Settings& settings, Store* store = nullptr) {
  Outcome outcome;
  try {
    outcome.control = try_to_join(settings, store);
  } catch (const Error& error) {
    outcome.error = error;
  }
  return outcome;
}

// All at once, one thread each.
inline std::vector<Outcome> join_all(const std::vector<Settings>& settings, Store* store = nullptr) {
  std::vector<Outcome> outcomes(settings.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < settings.size(); ++i)
    threads.emplace_back([&, i] { outcomes[i] = join(settings[i], store); });
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

// As the ranks of a job leave: all at once.
inline void leave_all(std::vector<Outcome>& outcomes) {
  std::vector<std::thread> threads;
  for (Outcome& outcome : outcomes) threads.emplace_back([&] { outcome.control.reset(); });
  for (std::thread& thread : threads) thread.join();
}

// n ranks that meet at a free port of this host: over the network with a secret, else by a local socket.
inline std::vector<Settings> job(int size, const std::string& secret = "", std::uint16_t port = free_port()) {
  std::vector<Settings> all(static_cast<std::size_t>(size));
  for (int rank = 0; rank < size; ++rank) {
    Settings& s = all[static_cast<std::size_t>(rank)];
    s.rank = rank;
    s.size = size;
    s.master_address = "127.0.0.1";
    s.master_port = port;
    s.secret = secret;
    s.join_timeout = milliseconds(30'000);
  }
  return all;
}

// Keeps what a rank is told, so that a test can wait for it.
class Inbox {
 public:
  struct Connection {
    int peer;
    Path path;
    std::uint64_t communicator;
    Socket socket;
    std::string error;
  };

  // The handlers own what they write to, so an Inbox may go before its Control.
  explicit Inbox(Control& control) {
    control.on_notice([state = state_](const Notice& notice) {
      const std::lock_guard lock(state->mutex);
      state->notices.push_back(notice);
      state->changed.notify_all();
    });
    control.on_connection(
        [state = state_](int peer, Path path, std::uint64_t communicator, int fd, const Error* error) {
          const std::lock_guard lock(state->mutex);
          state->connections.push_back({peer, path, communicator, Socket(fd), error ? error->what() : ""});
          state->changed.notify_all();
        });
  }

  // Nothing if it does not come in time.
  std::optional<Notice> notice(Notice::Kind kind, int peer, milliseconds limit = milliseconds(10'000)) {
    std::optional<Notice> found;
    wait(limit, [&] {
      for (const Notice& notice : state_->notices)
        if (notice.kind == kind && notice.peer == peer) found = notice;
      return found.has_value();
    });
    return found;
  }

  std::optional<Connection> connection(int peer, std::uint64_t communicator,
                                       milliseconds limit = milliseconds(10'000)) {
    std::optional<Connection> found;
    wait(limit, [&] {
      for (std::size_t i = 0; i < state_->connections.size() && !found; ++i)
        if (state_->connections[i].peer == peer && state_->connections[i].communicator == communicator) {
          found = std::move(state_->connections[i]);
          state_->connections.erase(state_->connections.begin() + static_cast<std::ptrdiff_t>(i));
        }
      return found.has_value();
    });
    return found;
  }

  std::size_t count(Notice::Kind kind) {
    const std::lock_guard lock(state_->mutex);
    return static_cast<std::size_t>(std::count_if(state_->notices.begin(), state_->notices.end(),
                                                  [&](const Notice& notice) { return notice.kind == kind; }));
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<Notice> notices;
    std::vector<Connection> connections;
  };
  void wait(milliseconds limit, const std::function<bool()>& here) {
    std::unique_lock lock(state_->mutex);
    state_->changed.wait_for(lock, limit, here);
  }

  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace tutti::internal::testing_ranks
