#include "control/acceptor.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

#include "base/descriptor.h"

namespace tutti::internal {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr std::chrono::milliseconds kPause{100};
constexpr std::chrono::milliseconds kForDescriptors{500};  // another's handshake may end meanwhile

// Any descriptor does that has no other effect.
Socket make_reserve() { return Socket(above_standard(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))); }

}  // namespace

Acceptor::Acceptor(asio::io_context& io, Clock::duration limit, std::size_t max_pending, Handlers handlers)
    : io_(io), limit_(limit), max_pending_(max_pending), handlers_(std::move(handlers)) {}

void Acceptor::open(Socket socket, const Handshake::AcceptPolicy& policy) {
  if (!reserve_) reserve_ = make_reserve();
  const bool local = own_end(socket.fd()).is_local();
  auto listener = std::make_shared<Listener>(
      Listener{asio::posix::stream_descriptor(io_, socket.release()), asio::steady_timer(io_), policy, local});
  listeners_.push_back(listener);
  wait_at(listener);
}

void Acceptor::close() {
  for (const auto& listener : listeners_) {
    error_code ignored;
    listener->descriptor.close(ignored);
  }
  listeners_.clear();
}

void Acceptor::wait_at(const std::shared_ptr<Listener>& listener) {
  if (!listener->descriptor.is_open()) return;
  listener->descriptor.async_wait(asio::posix::stream_descriptor::wait_read, [this, listener](error_code ec) {
    if (!ec && listener->descriptor.is_open()) accept_at(listener);
  });
}

void Acceptor::wait_again_at(const std::shared_ptr<Listener>& listener) {
  listener->pause.expires_after(kPause);
  listener->pause.async_wait([this, listener](error_code ec) {
    if (!ec) wait_at(listener);
  });
}

void Acceptor::accept_at(const std::shared_ptr<Listener>& listener) {
  int error = 0;
  Socket socket = accept_from(listener->descriptor.native_handle(), error);
  if (is_out_of_descriptors(error) || error == ENOBUFS || error == ENOMEM) return no_descriptor_at(listener, error);
  if (socket) {
    without_descriptors_since_.reset();
    welcome(std::move(socket), *listener);
  }
  wait_at(listener);
}

void Acceptor::no_descriptor_at(const std::shared_ptr<Listener>& listener, int error) {
  const Clock::time_point now = Clock::now();
  if (now - std::exchange(last_without_descriptors_, now) > kForDescriptors) without_descriptors_since_.reset();
  if (!without_descriptors_since_) {
    without_descriptors_since_ = now;
    handlers_.on_stranger("cannot take a connection: " + system_words(error));
  }
  const bool is_enough = is_out_of_descriptors(error) && now - *without_descriptors_since_ >= kForDescriptors;
  if (is_enough) drop_one(true);
  if (is_enough && std::exchange(reserve_, Socket())) {
    Socket socket = accept_from(listener->descriptor.native_handle(), error);
    if (socket && is_let_in(socket, *listener)) return turn_away(std::move(socket), listener);
    socket = Socket();
    reserve_ = make_reserve();
  }
  wait_again_at(listener);
}

bool Acceptor::is_let_in(const Socket& socket, const Listener& listener) {
  const bool let_in = !listener.local || is_same_user(socket.fd());
  if (!let_in) handlers_.on_stranger("turned away a process of another user at the local socket");
  return let_in;
}

void Acceptor::welcome(Socket socket, const Listener& listener) {
  if (!reserve_) reserve_ = make_reserve();  // once there are descriptors again
  if (!is_let_in(socket, listener)) return;
  forget_those_who_are_done();
  if (pending_.size() >= max_pending_) drop_one(false);
  const Endpoint other = other_end(socket.fd());
  const std::string from = listener.local ? "a local process" : other.text();
  auto link = std::make_shared<Link>(io_, std::move(socket), Handshake::accepting(listener.policy, random_digest()));
  link->on_authenticated = [this, raw = link.get()] { handlers_.on_link(raw->shared_from_this()); };
  link->on_closed = [this, from, raw = link.get()](const std::string& why) {
    if (raw->handshake().heard()) handlers_.on_stranger("turned away " + from + ": " + why);
  };
  pending_.push_back({link, listener.local ? "" : other.address()});
  link->start(false, limit_, limit_);
}

// In the reserve's place. It is told once it has proven that it is a rank.
void Acceptor::turn_away(Socket socket, const std::shared_ptr<Listener>& listener) {
  Handshake::AcceptPolicy policy = listener->policy;
  policy.has_room = false;
  auto link = std::make_shared<Link>(io_, std::move(socket), Handshake::accepting(policy, random_digest()));
  link->on_closed = [this, listener, raw = link.get()](const std::string&) {
    reserve_ = make_reserve();
    if (raw->handshake().failure() == Handshake::Failure::no_room)
      handlers_.on_no_room(raw->handshake().opening(), listener->local);
    wait_at(listener);
  };
  link->start(false, limit_, limit_);
}

void Acceptor::forget_those_who_are_done() {
  std::erase_if(pending_, [](const Pending& entry) {
    const auto link = entry.link.lock();
    return !link || !link->is_open() || link->is_authenticated();
  });
}

void Acceptor::drop_one(bool only_if_silent) {
  forget_those_who_are_done();
  std::map<std::string, std::size_t> callers;
  for (const Pending& entry : pending_) ++callers[entry.from];
  auto dropped = pending_.end();
  std::pair<std::size_t, bool> most{0, false};
  for (auto entry = pending_.begin(); entry != pending_.end(); ++entry) {
    const std::pair<std::size_t, bool> how_dispensable{callers[entry->from], !entry->link.lock()->handshake().heard()};
    if (how_dispensable <= most || (only_if_silent && !how_dispensable.second)) continue;
    most = how_dispensable;
    dropped = entry;
  }
  if (dropped == pending_.end()) return;
  dropped->link.lock()->close();
  pending_.erase(dropped);
}

}  // namespace tutti::internal
