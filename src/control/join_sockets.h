// How a rank joins. Rank 0 serves the others (JoinServer), and these make a connection to it (JoinClient). Sockets and
// timers around the state machines of join.h. Everything runs on the control thread. What follows is for lines.h.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "control/join.h"
#include "control/link.h"
#include "control/meeting.h"

namespace tutti::internal {

// What a JoinRole asks of, and tells, the rank that it belongs to.
class JoinUser {
 public:
  // What this rank says of itself; it listens for data from now on. own_end: of the connection to rank 0. Throws
  // Error.
  virtual Introduction introduce(const std::optional<Endpoint>& own_end) = 0;
  virtual void joined(const Table& table) = 0;
  virtual void join_failed(const Error& error) = 0;

 protected:
  ~JoinUser() = default;
};

class JoinRole {
 public:
  virtual ~JoinRole() = default;
  virtual void start() = 0;  // joined() or join_failed() follows
  virtual void tick(Clock::time_point now) = 0;
  // The connections that it has made, by rank, once all have joined. They are no concern of its own any more.
  virtual std::vector<std::shared_ptr<Link>> take_links() = 0;
  // Before all have joined: says goodbye; done() when there is nothing left to wait for.
  virtual void leave(std::function<void()> done) = 0;
};

class JoinServer final : public JoinRole {
 public:
  JoinServer(boost::asio::io_context& io, const Settings& settings, const Meeting& meeting, const Digest& salt,
             JoinUser& user);

  void start() override;
  void tick(Clock::time_point now) override;
  std::vector<std::shared_ptr<Link>> take_links() override;
  void leave(std::function<void()> done) override;

  void arrived(const std::shared_ptr<Link>& link);  // an authenticated control connection
  void turned_away(const std::string& why);         // a rank was told, for want of a descriptor: so there can be no job

 private:
  void first_words(const std::shared_ptr<Link>& link, const ControlMessage& message);
  void admit(const std::shared_ptr<Link>& link, const Introduction& introduction);
  void complete();
  void refuse(const std::shared_ptr<Link>& link, const Refusal& refusal);
  void refuse_all(const Refusal& refusal, std::chrono::milliseconds patience);
  bool all_told() const { return told_ >= settings_.size - 1; }
  void fail_after(std::chrono::milliseconds time);
  void warn(Clock::time_point now);
  void said(int rank, const ControlMessage& message);
  void closed(int rank, const std::string& why);

  boost::asio::io_context& io_;
  const Settings& settings_;
  const Log log_{settings_};
  const Meeting& meeting_;
  Digest salt_;
  JoinUser& user_;
  std::optional<Registrar> join_;
  std::optional<Refusal> refusal_;
  int told_ = 0;                              // ranks that know that there is no job, or are gone
  bool is_complete_ = false;                  // all have joined
  std::vector<std::shared_ptr<Link>> links_;  // by rank
  boost::asio::steady_timer timer_;
  Clock::duration warn_after_;
};

class JoinClient final : public JoinRole {
 public:
  JoinClient(boost::asio::io_context& io, const Settings& settings, const Meeting& meeting, JoinUser& user);

  void start() override;
  void tick(Clock::time_point now) override;
  std::vector<std::shared_ptr<Link>> take_links() override;
  void leave(std::function<void()> done) override;

 private:
  void attempt();
  void attempt_failed(Handshake::Failure failure, const std::string& why);
  void introduce();
  void received(const ControlMessage& message);
  void closed(const std::string& why);
  void try_again();  // where it was not taken in
  void overdue();
  void fail(const Error& error);
  bool is_introduced() const { return introduction_ && link_->is_open() && link_->is_authenticated(); }
  bool is_outside() const { return settings_.rank >= settings_.size; }
  const Endpoint& place() const { return meeting_.places[attempts_ % meeting_.places.size()]; }

  boost::asio::io_context& io_;
  const Settings& settings_;
  const Log log_{settings_};
  const Meeting& meeting_;
  JoinUser& user_;
  Joiner joiner_;
  std::shared_ptr<Link> link_;
  std::size_t attempts_ = 0;
  std::string last_error_;
  std::optional<Clock::time_point> strange_since_;  // since when something that is not tutti answers
  std::optional<Introduction> introduction_;        // once said
  bool over_ = false;                               // joined, or failed, or given up
  boost::asio::steady_timer deadline_, pause_;
  Clock::duration warn_after_;
};

}  // namespace tutti::internal
