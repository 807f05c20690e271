// The data connections of the control plane: made, taken, and handed to the handler.
#include <boost/asio/post.hpp>
#include <cerrno>
#include <utility>

#include "base/descriptor.h"
#include "control/plane.h"

namespace tutti::internal {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr int kSlowest = 12;  // times connect_timeout, for a peer that has been reached to answer

// It is this rank that lacks something.
bool is_lack(int error) { return is_out_of_descriptors(error) || error == ENOMEM || error == ENOBUFS; }

}  // namespace

void Plane::link_arrived(const std::shared_ptr<Link>& link) {
  const Handshake::Opening opening = link->handshake().opening();
  if (opening.purpose == Handshake::Purpose::control) {
    link->expect_message_within(kSlowest * settings_.connect_timeout);
    return server_ ? server_->arrived(link) : lines_->arrived(link);
  }
  const Path path = link->own_end().is_local() ? Path::local : Path::tcp;
  deliver({opening.from, path, opening.communicator, Socket(link->release()), std::nullopt});
}

void Plane::no_room_for(const Handshake::Opening& opening, bool local) {
  const std::string who = "rank " + std::to_string(settings_.rank);
  const std::string why = "there is no descriptor left for the connection to rank " + std::to_string(opening.from) +
                          ": raise `ulimit -n` where " + who + " runs";
  if (opening.purpose == Handshake::Purpose::data) {
    const Path path = local ? Path::local : Path::tcp;
    return deliver({opening.from, path, opening.communicator, Socket(),
                    Error(ErrorCode::system, why, settings_.rank, opening.from)});
  }
  if (!server_) return;     // it calls again: lines.cc
  data_listeners_.clear();  // there will be no job: room for some to whom it is to be told
  server_->turned_away(who + ": " + why);
}

void Plane::on_connection(OnConnection handler) {
  asio::post(io_, [this, handler = std::move(handler)] {
    on_connection_ = handler;
    for (Arrival& arrival : std::exchange(arrivals_, {})) deliver(std::move(arrival));
  });
}

void Plane::connect(int peer, Path path, std::uint64_t communicator) {
  asio::post(io_, [this, peer, path, communicator] {
    connect_now(peer, path, communicator, Clock::now() + kSlowest * settings_.connect_timeout);
  });
}

void Plane::connect_now(int peer, Path path, std::uint64_t communicator, Clock::time_point deadline) {
  const auto failed = [this, peer, path, communicator](const std::string& why, bool by_own_lack = false) {
    connect_failed(peer, path, communicator, why, by_own_lack);
  };
  if (leaving_) return;
  if (peer < 0 || peer >= settings_.rank) return failed("only lower ranks take connections from this one");
  if (lines_->seat().log().is_gone(peer)) return failed("it has died or left");
  const Member& member = members_[static_cast<std::size_t>(peer)];
  const auto place =
      path == Path::local ? Endpoint::local(member.local_name) : Endpoint::parse(member.address, member.port);
  if (!place) return failed("it listens on no network address");

  int error = 0;
  Socket socket = start_connecting(*place, error);
  if (error == EAGAIN && Clock::now() < deadline)  // a local listener whose queue is full
    return connect_again(peer, path, communicator, deadline);
  if (error != 0 && error != EINPROGRESS) return failed(place->text() + ": " + system_words(error), is_lack(error));
  if (path == Path::local && !is_same_user(socket.fd())) return failed("another user's process answers for it");

  auto link =
      std::make_shared<Link>(io_, std::move(socket),
                             Handshake::connecting({Handshake::Purpose::data, settings_.rank, peer, communicator},
                                                   data_key(salt_), random_digest()));
  link->on_authenticated = [this, raw = link.get(), peer, path, communicator] {
    deliver({peer, path, communicator, Socket(raw->release()), std::nullopt});
  };
  link->on_closed = [=, this, raw = link.get(), where = place->text()](const std::string& why) {
    // If too many strangers call a peer, or it finds no time for a handshake, it drops callers that have not yet proven
    // that they are ranks.
    const bool cut_off = raw->has_connected() && raw->handshake().failure() == Handshake::Failure::none;
    if (cut_off && Clock::now() < deadline) return connect_again(peer, path, communicator, deadline);
    failed(where + ": " + why);
  };
  // A connected peer gets more time to answer: its machine may be swamped by its ranks, for example. If its process
  // dies, the connection closes; if it stands still, the hub says so.
  link->start(error == EINPROGRESS, settings_.connect_timeout, kSlowest * settings_.connect_timeout);
}

void Plane::connect_again(int peer, Path path, std::uint64_t communicator, Clock::time_point deadline) {
  auto pause = std::make_shared<asio::steady_timer>(io_, std::chrono::milliseconds(10));
  pause->async_wait([this, pause, peer, path, communicator, deadline](error_code ec) {
    if (!ec) connect_now(peer, path, communicator, deadline);
  });
}

void Plane::connect_failed(int peer, Path path, std::uint64_t communicator, const std::string& why, bool by_own_lack) {
  const std::string who = by_own_lack ? "" : "rank " + std::to_string(settings_.rank) + ": ";
  deliver({peer, path, communicator, Socket(),
           Error(by_own_lack ? ErrorCode::system : ErrorCode::unreachable,
                 who + "rank " + std::to_string(peer) + " cannot be reached (" + why + ")", settings_.rank, peer)});
}

void Plane::deliver(Arrival arrival) {
  if (leaving_) return;
  if (!on_connection_) return arrivals_.push_back(std::move(arrival));
  const Error* error = arrival.error ? &*arrival.error : nullptr;
  on_connection_(arrival.peer, arrival.path, arrival.communicator, arrival.socket.release(), error);
}

}  // namespace tutti::internal
