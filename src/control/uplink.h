// How a rank joins. Rank 0 is the hub of that (Hub); every other rank makes a connection to it (HubClient). Sockets and
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

// What an Uplink asks of, and tells, the rank that it belongs to.
class UplinkUser {
 public:
  // What this rank says of itself; it listens for data from now on. own_end: of the connection to the hub. Throws
  // Error.
  virtual Introduction introduce(const std::optional<Endpoint>& own_end) = 0;
  virtual void joined(const Table& table) = 0;
  virtual void join_failed(const Error& error) = 0;

 protected:
  ~UplinkUser() = default;
};

class Uplink {
 public:
  virtual ~Uplink() = default;
  virtual void start() = 0;  // joined() or join_failed() follows
  virtual void tick(Clock::time_point now) = 0;
  // The connections that it has made, by rank, once all have joined. They are no concern of its own any more.
  virtual std::vector<std::shared_ptr<Link>> take_links() = 0;
  // Before all have joined: says goodbye; done() when there is nothing left to wait for.
  virtual void leave(std::function<void()> done) = 0;
};

class Hub final : public Uplink {
 public:
  Hub(boost::asio::io_context& io, const Settings& settings, const Meeting& meeting, const Digest& salt,
      UplinkUser& user);

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
  UplinkUser& user_;
  std::optional<JoinHub> join_;
  std::optional<Refusal> refusal_;
  int told_ = 0;                              // connections that have been refused
  bool is_complete_ = false;                  // all have joined
  std::vector<std::shared_ptr<Link>> links_;  // by rank
  boost::asio::steady_timer timer_;
  Clock::duration warn_after_;
};

class HubClient final : public Uplink {
 public:
  HubClient(boost::asio::io_context& io, const Settings& settings, const Meeting& meeting, UplinkUser& user);

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
  void try_again();  // at another hub
  void overdue();
  void fail(const Error& error);
  bool is_introduced() const { return introduction_ && link_->is_open() && link_->is_authenticated(); }
  bool is_outside() const { return settings_.rank >= settings_.size; }
  const Endpoint& place() const { return meeting_.places[attempts_ % meeting_.places.size()]; }

  boost::asio::io_context& io_;
  const Settings& settings_;
  const Log log_{settings_};
  const Meeting& meeting_;
  UplinkUser& user_;
  Joiner joiner_;
  std::shared_ptr<Link> link_;
  std::size_t attempts_ = 0;
  std::string last_error_;
  std::optional<Clock::time_point> strange_since_;  // since when something that is not tutti answers
  std::optional<Introduction> introduction_;        // once said
  bool joined_ = false;
  bool over_ = false;
  boost::asio::steady_timer deadline_, pause_;
  Clock::duration warn_after_;
};

}  // namespace tutti::internal
