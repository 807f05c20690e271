#include "control/status_server.h"

#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <exception>
#include <utility>

#include "control/status_protocol.h"

namespace tutti::internal {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr std::chrono::seconds kCallerWithin{2};  // to ask, and to take the answer

}  // namespace

void StatusServer::open(const std::string& name, int dump_signal, StatusSource source) try {
  source_ = std::move(source);
  signal_.emplace(dump_signal);
  listener_.emplace(io_, listen_at(Endpoint::local(name)).release());
  wait_for_callers();
} catch (const std::exception&) {  // no descriptor is left, or somebody has that name: nobody can ask
  listener_.reset();
}

void StatusServer::close() {
  listener_.reset();
  if (const auto caller = caller_.lock()) dismiss(*caller);
  signal_.reset();
  source_ = {};
}

void StatusServer::tick() {
  if (signal_ && signal_->came() && source_.dump) source_.dump();
  if (caller_.expired()) wait_for_callers();  // where there was no descriptor for one
}

void StatusServer::wait_for_callers() {
  if (waits_ || !listener_) return;
  waits_ = true;
  listener_->async_wait(asio::posix::stream_descriptor::wait_read, [this](error_code ec) {
    waits_ = false;
    if (ec || !listener_) return;
    try {
      take_caller();
    } catch (const std::exception&) {  // no memory for it
    }
  });
}

void StatusServer::take_caller() {
  int error = 0;
  Socket socket = accept_from(listener_->native_handle(), error);
  if (!socket) return;
  if (!is_same_user(socket.fd())) return wait_for_callers();
  const auto caller =
      std::make_shared<Caller>(Caller{asio::posix::stream_descriptor(io_, socket.fd()), asio::steady_timer(io_)});
  socket.release();
  caller_ = caller;
  caller->limit.expires_after(kCallerWithin);
  caller->limit.async_wait([this, caller](error_code ec) {
    if (!ec) dismiss(*caller);
  });
  listen_to(caller);
}

void StatusServer::listen_to(const std::shared_ptr<Caller>& caller) {
  caller->descriptor.async_wait(asio::posix::stream_descriptor::wait_read, [this, caller](error_code ec) {
    char wanted = 0;
    if (ec || ::recv(caller->descriptor.native_handle(), &wanted, 1, MSG_DONTWAIT) != 1 || !source_.report)
      return dismiss(*caller);
    try {
      caller->answer = source_.report(wanted == kStatusWhole);
    } catch (const std::exception&) {  // no memory for it
    }
    answer(caller);
  });
}

void StatusServer::answer(const std::shared_ptr<Caller>& caller) {
  while (caller->written < caller->answer.size()) {
    const ssize_t sent = ::send(caller->descriptor.native_handle(), caller->answer.data() + caller->written,
                                caller->answer.size() - caller->written, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno != EAGAIN) break;
    if (sent < 0) {
      caller->descriptor.async_wait(asio::posix::stream_descriptor::wait_write,
                                    [this, caller](error_code ec) { ec ? dismiss(*caller) : answer(caller); });
      return;
    }
    caller->written += static_cast<std::size_t>(sent);
  }
  dismiss(*caller);
}

void StatusServer::dismiss(Caller& caller) {
  if (!caller.descriptor.is_open()) return;
  error_code ignored;
  caller.descriptor.close(ignored);
  caller.limit.cancel();
  caller_.reset();
  wait_for_callers();
}

}  // namespace tutti::internal
