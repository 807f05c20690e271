#include "runtime/control_plane.h"

#include <unistd.h>

#include <boost/asio/post.hpp>
#include <cerrno>
#include <system_error>
#include <utility>

#include "topology/processors.h"

namespace tutti::runtime {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr int kSlowest = 12;  // times connect_timeout, for a peer that has been reached to answer

Plane::Plane(const Settings& settings, Meeting meeting)
    : settings_(settings),
      meeting_(std::move(meeting)),
      work_(io_.get_executor()),
      tick_timer_(io_),
      reception_(
          io_, settings.connect_timeout, static_cast<std::size_t>(settings.size) + 64,
          [this](const std::shared_ptr<Link>& link) { link_arrived(link); },
          [this](const std::string& what) { stranger(what); }) {
  if (settings_.rank == 0) {
    salt_ = random_digest();
    auto hub = std::make_unique<Hub>(io_, settings_, meeting_, salt_, *this);
    hub_ = hub.get();
    uplink_ = std::move(hub);
  } else {
    uplink_ = std::make_unique<FarHub>(io_, settings_, meeting_, *this);
  }
  for (Socket& listener : meeting_.listeners)
    reception_.open(std::move(listener),
                    {settings_.rank, settings_.size, meeting_.secret, data_key(salt_), true, true});
}

Plane::~Plane() {
  asio::post(io_, [this] { leave(); });
  if (thread_.joinable()) thread_.join();
}

void Plane::join() {
  thread_ = std::thread([this] { run(); });
  join_result_.get_future().get();
}

void Plane::run() {
  try {
    uplink_->start();
    tick();
    io_.run();
  } catch (
      const std::exception& failure) {  // out of memory or of descriptors: nobody is served any more, and all must know
    const std::string what = std::string("the control thread failed: ") + failure.what();
    report(settings_.rank, what);
    if (join_over_)
      hub_closed(what);
    else
      join_failed(join_error(ErrorCode::system, settings_.rank, settings_.rank, what));
  }
}

void Plane::tick() {
  tick_timer_.expires_after(Pace::of(settings_.connect_timeout).tick);
  tick_timer_.async_wait([this](error_code ec) {
    if (!ec) tick();
  });
  uplink_->tick(Clock::now());
  if (!seat_) return;
  if (!hub_) seat_->tick(Clock::now());
  seat_spoke();
}

// --- joining

std::unique_ptr<Control> join_at(const Settings& settings, Meeting meeting) {
  auto plane = std::make_unique<Plane>(settings, std::move(meeting));
  plane->join();
  return plane;
}

std::string Plane::data_key(const Digest& salt) const {
  return std::string(as_key(hmac_sha256(meeting_.secret, salt)));
}

// Nothing where this rank takes data at its meeting place, or over no network at all.
std::optional<Endpoint> Plane::address_to_listen_at(const std::optional<Endpoint>& own_end) const {
  if (settings_.transport == "shm" || (hub_ && !meeting_.is_local())) return std::nullopt;
  const bool by_network = own_end && !own_end->is_local();
  if (!settings_.interface.empty())
    return find_interface(settings_.interface, by_network ? own_end->family() : AF_UNSPEC);
  return by_network ? *own_end : loopback();
}

Introduction Plane::introduce(const std::optional<Endpoint>& own_end) {
  Introduction own;
  own.size = settings_.size;
  own.timeout_ms = settings_.timeout.count();
  own.transport = settings_.transport;
  Member& me = own.member;
  me.rank = settings_.rank;
  me.host_id = host_id();
  me.pid = ::getpid();
  me.processors = topology::to_bits(topology::allowed_processors());
  me.share = topology::processor_share();
  me.no_verbs = meeting_.announcement.no_verbs;
  me.sees_gpus = meeting_.announcement.sees_gpus;
  me.local_name = "tutti-" + to_hex(random_digest());
  data_listeners_.push_back(listen_at(Endpoint::local(me.local_name)));
  std::optional<Endpoint> at;
  if (const auto address = address_to_listen_at(own_end)) {
    data_listeners_.push_back(listen_in(*address, settings_.port_first, settings_.port_last));
    at = runtime::own_end(data_listeners_.back().fd());
  } else if (hub_ && !meeting_.is_local()) {
    at = meeting_.places.front();
  }
  if (at) {
    me.address = at->address();
    me.port = at->port();
  }
  return own;
}

void Plane::joined(const Table& table) {
  members_ = table.members;
  announced_ = table.announced;
  seat_.emplace(settings_.rank, settings_.size, Pace::of(settings_.connect_timeout), Clock::now());
  for (Socket& listener : std::exchange(data_listeners_, {}))
    reception_.open(std::move(listener), {settings_.rank, settings_.size, "", data_key(table.salt), false, true});
  salt_ = table.salt;
  join_over_ = true;
  join_result_.set_value();
}

void Plane::join_failed(const Error& error) {
  if (!std::exchange(join_over_, true)) join_result_.set_exception(std::make_exception_ptr(error));
}

// --- notices

void Plane::received(const ControlMessage& message) {
  if (!seat_) return;
  seat_->received(message, Clock::now());
  seat_spoke();
}

void Plane::hub_closed(const std::string& why) {
  if (!seat_) return;
  seat_->closed(why);
  seat_spoke();
}

void Plane::seat_spoke() {
  for (const ControlMessage& message : seat_->take_outgoing()) uplink_->send(message);
  for (Notice& notice : seat_->take_notices()) {
    if (on_notice_)
      on_notice_(notice);
    else if (!leaving_)
      notices_.push_back(std::move(notice));
  }
}

void Plane::on_notice(OnNotice handler) {
  asio::post(io_, [this, handler = std::move(handler)] {
    on_notice_ = handler;
    for (const Notice& notice : std::exchange(notices_, {})) on_notice_(notice);
  });
}

void Plane::poison(std::uint64_t communicator, ErrorCode code, const std::string& message) {
  Notice notice;
  notice.kind = Notice::Kind::poisoned;
  notice.peer = settings_.rank;
  notice.communicator = communicator;
  notice.code = code;
  notice.message = message.substr(0, kMaxPoisonText);
  asio::post(io_, [this, notice] { uplink_->send(notice); });
}

void Plane::probe(int peer, std::uint64_t communicator, std::uint32_t sequence) {
  asio::post(io_, [this, peer, communicator, sequence] {
    uplink_->send(Probe{settings_.rank, peer, communicator, sequence});
  });
}

void Plane::publish(std::uint64_t communicator, std::shared_ptr<const CallHistory> history) {
  asio::post(io_, [this, communicator, history = std::move(history)] { seat_->publish(communicator, history); });
}

void Plane::unpublish(std::uint64_t communicator) {
  asio::post(io_, [this, communicator] { seat_->unpublish(communicator); });
}

// --- data connections

void Plane::link_arrived(const std::shared_ptr<Link>& link) {
  const Handshake::Opening opening = link->handshake().opening();
  if (opening.purpose == Handshake::Purpose::control) return hub_->arrived(link);
  const Path path = link->own_end().is_local() ? Path::local : Path::tcp;
  deliver({opening.from, path, opening.communicator, Socket(link->release()), std::nullopt});
}

void Plane::stranger(const std::string& what) {
  ++unreported_strangers_;
  const Clock::time_point now = Clock::now();
  if (now - last_complaint_ < std::chrono::seconds(1)) return;
  last_complaint_ = now;
  const int others = std::exchange(unreported_strangers_, 0) - 1;
  report(settings_.rank, what + (others > 0 ? " (and " + std::to_string(others) + " more before)" : ""));
}

void Plane::on_connection(OnConnection handler) {
  asio::post(io_, [this, handler = std::move(handler)] {
    on_connection_ = handler;
    for (Arrival& arrival : std::exchange(arrivals_, {})) deliver(std::move(arrival));
  });
}

void Plane::connect(int peer, Path path, std::uint64_t communicator) {
  asio::post(io_, [this, peer, path, communicator] {
    connect_now(peer, path, communicator, Clock::now() + settings_.connect_timeout);
  });
}

void Plane::connect_now(int peer, Path path, std::uint64_t communicator, Clock::time_point deadline) {
  const auto failed = [this, peer, path, communicator](const std::string& why) {
    connect_failed(peer, path, communicator, why);
  };
  if (leaving_) return;
  if (peer < 0 || peer >= settings_.rank) return failed("only lower ranks take connections from this one");
  if (seat_->is_gone(peer)) return failed("it has died or left");
  const Member& member = members_[static_cast<std::size_t>(peer)];
  const auto place =
      path == Path::local ? Endpoint::local(member.local_name) : Endpoint::parse(member.address, member.port);
  if (!place) return failed("it listens on no network address");

  int error = 0;
  Socket socket = start_connecting(*place, error);
  if (error == EAGAIN && Clock::now() < deadline) {  // a local listener whose queue is full
    auto pause = std::make_shared<asio::steady_timer>(io_, std::chrono::milliseconds(10));
    return pause->async_wait([this, pause, peer, path, communicator, deadline](error_code ec) {
      if (!ec) connect_now(peer, path, communicator, deadline);
    });
  }
  if (error != 0 && error != EINPROGRESS) return failed(place->text() + ": " + std::generic_category().message(error));
  if (path == Path::local && !is_same_user(socket.fd())) return failed("another user's process answers for it");

  auto link =
      std::make_shared<Link>(io_, std::move(socket),
                             Handshake::connecting({Handshake::Purpose::data, settings_.rank, peer, communicator},
                                                   data_key(salt_), random_digest()));
  link->on_authenticated = [this, raw = link.get(), peer, path, communicator] {
    deliver({peer, path, communicator, Socket(raw->release()), std::nullopt});
  };
  link->on_closed = [failed, where = place->text()](const std::string& why) { failed(where + ": " + why); };
  // Once it is connected, a peer whose process is slow to answer, on a machine that is swamped by its ranks, say, gets
  // more time: if it dies, the connection closes, and if it stands still, rank 0 says so.
  link->start(error == EINPROGRESS, deadline - Clock::now(), kSlowest * settings_.connect_timeout);
}

void Plane::connect_failed(int peer, Path path, std::uint64_t communicator, const std::string& why) {
  const std::string names = "rank " + std::to_string(settings_.rank) + ": rank " + std::to_string(peer);
  deliver({peer, path, communicator, Socket(),
           Error(ErrorCode::unreachable, names + " cannot be reached (" + why + ")", settings_.rank, peer)});
}

void Plane::deliver(Arrival arrival) {
  if (leaving_) return;
  if (!on_connection_) return arrivals_.push_back(std::move(arrival));
  const Error* error = arrival.error ? &*arrival.error : nullptr;
  on_connection_(arrival.peer, arrival.path, arrival.communicator, arrival.socket.release(), error);
}

// --- the end

void Plane::leave() {
  leaving_ = true;
  on_notice_ = nullptr;
  on_connection_ = nullptr;
  reception_.close();
  uplink_->leave([this] { io_.stop(); });
}

}  // namespace tutti::runtime
