// Control over sockets: the control thread, and the data connections. The JoinRole joins; the Lines go on from there.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "control/acceptor.h"
#include "control/join_sockets.h"
#include "control/lines.h"
#include "control/status_server.h"

namespace tutti::internal {

class Plane final : public Control, public JoinUser {
 public:
  Plane(const Settings& settings, Meeting meeting);
  ~Plane() override;

  void join();  // starts the thread; returns or throws when the join is over

  const std::vector<Member>& members() const override { return members_; }
  int rank() const override { return settings_.rank; }
  const std::string& announced() const override { return announced_; }
  std::string serve_status(StatusSource source) override;
  void leave() override;
  void on_connection(OnConnection handler) override;
  void connect(int peer, Path path, std::uint64_t communicator) override;
  void on_notice(OnNotice handler) override;
  void poison(std::uint64_t communicator, ErrorCode code, int about, const std::string& message) override;
  void probe(int peer, std::uint64_t communicator, std::uint64_t whole, std::uint32_t sequence) override;
  void vote(Vote vote) override;
  void recall(std::uint64_t communicator, Vote::On on, std::uint32_t number) override;
  void survey(const std::vector<int>& peers, std::uint64_t communicator, std::uint64_t whole,
              std::uint32_t sequence) override;
  void publish(std::uint64_t communicator, std::shared_ptr<const CallHistory> history) override;
  void unpublish(std::uint64_t communicator) override;
  void farewell(Farewell farewell) override;

 private:
  // A data connection that is wanted or has come.
  struct Arrival {
    int peer;
    Path path;
    std::uint64_t communicator;
    Socket socket;
    std::optional<Error> error;
  };

  Introduction introduce(const std::optional<Endpoint>& own_end) override;
  void joined(const Table& table) override;
  void join_failed(const Error& error) override;

  void run();
  void tick();
  void hear(Notice notice);
  // --- data.cc
  void link_arrived(const std::shared_ptr<Link>& link);
  void no_room_for(const Handshake::Opening& opening, bool local);
  void stranger(const std::string& what);
  void connect_now(int peer, Path path, std::uint64_t communicator, Clock::time_point deadline);
  void connect_failed(int peer, Path path, std::uint64_t communicator, const std::string& why, bool by_own_lack);
  void connect_again(int peer, Path path, std::uint64_t communicator, Clock::time_point deadline);
  void deliver(Arrival arrival);

  void depart();
  std::optional<Endpoint> address_to_listen_at(const std::optional<Endpoint>& own_end) const;
  std::string data_key(const Digest& salt) const;

  const Settings settings_;
  const Log log_{settings_};
  Meeting meeting_;
  boost::asio::io_context io_{1};  // destroyed after all that follows
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  boost::asio::steady_timer tick_timer_;
  Acceptor acceptor_;
  StatusServer status_{io_};
  Digest salt_{};  // rank 0 draws it
  std::unique_ptr<JoinRole> join_role_;
  JoinServer* server_ = nullptr;        // join_role_, on rank 0
  std::vector<Socket> data_listeners_;  // until the join is complete
  std::vector<Member> members_;
  std::unique_ptr<Lines> lines_;  // once all have joined
  std::string announced_;
  std::promise<void> join_result_;
  bool join_over_ = false;
  bool leaving_ = false;

  OnConnection on_connection_;
  OnNotice on_notice_;
  std::vector<Arrival> arrivals_;  // for a handler that is not there yet
  std::vector<Notice> notices_;    // likewise

  Clock::time_point last_complaint_{};
  int unreported_strangers_ = 0;
  std::once_flag left_;
  std::thread thread_;
};

}  // namespace tutti::internal
