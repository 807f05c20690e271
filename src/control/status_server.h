// Where `tutti status` asks a rank what it is doing.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "control/control.h"
#include "control/dump_signal.h"
#include "net/socket.h"

namespace tutti::internal {

// Listens at a local socket, and answers processes of our own user, one at a time, as
// status_protocol.h says. Looks for the signal too. Belongs to the control thread. Whatever goes wrong here has no
// effect on the job.
class StatusServer {
 public:
  explicit StatusServer(boost::asio::io_context& io) : io_(io) {}

  void open(const std::string& name, int dump_signal, StatusSource source);
  void tick();
  void close();

 private:
  struct Caller {
    boost::asio::posix::stream_descriptor descriptor;
    boost::asio::steady_timer limit;
    std::string answer{};
    std::size_t written = 0;
  };
  void wait_for_callers();
  void take_caller();
  void listen_to(const std::shared_ptr<Caller>& caller);
  void answer(const std::shared_ptr<Caller>& caller);
  void dismiss(Caller& caller);

  boost::asio::io_context& io_;
  std::optional<boost::asio::posix::stream_descriptor> listener_;
  StatusSource source_;
  std::optional<DumpSignal> signal_;
  bool waits_ = false;            // for the next caller
  std::weak_ptr<Caller> caller_;  // the others wait in the kernel's queue
};

}  // namespace tutti::internal
