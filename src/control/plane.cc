#include "control/plane.h"

#include <unistd.h>

#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/system_error.hpp>
#include <system_error>
#include <utility>

#include "base/descriptor.h"
#include "control/status_protocol.h"
#include "topology/processors.h"

namespace tutti::internal {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr std::chrono::milliseconds kSayingWithin{200};

// Eight digits that tell the jobs of a host apart, and nothing of the salt.
std::string number_of_job(const Digest& salt) {
  const Digest digest = hmac_sha256("status", salt);
  std::uint64_t number = 0;
  for (int i = 0; i < 8; ++i) number = number << 8 | std::to_integer<std::uint64_t>(digest[i]);
  const std::string digits = std::to_string(number % 100'000'000);
  return std::string(8 - digits.size(), '0') + digits;
}

}  // namespace

Plane::Plane(const Settings& settings, Meeting meeting)
    : settings_(settings),
      meeting_(std::move(meeting)),
      work_(io_.get_executor()),
      tick_timer_(io_),
      acceptor_(
          io_, settings.connect_timeout, static_cast<std::size_t>(settings.size) + 64,
          {.on_link = [this](const std::shared_ptr<Link>& link) { link_arrived(link); },
           .on_stranger = [this](const std::string& what) { stranger(what); },
           .on_no_room = [this](const Handshake::Opening& opening, bool local) { no_room_for(opening, local); }}) {
  if (settings_.rank == 0) {
    salt_ = random_digest();
    auto server = std::make_unique<JoinServer>(io_, settings_, meeting_, salt_, *this);
    server_ = server.get();
    join_role_ = std::move(server);
  } else {
    join_role_ = std::make_unique<JoinClient>(io_, settings_, meeting_, *this);
  }
  for (Socket& listener : meeting_.listeners)
    acceptor_.open(std::move(listener), {settings_.rank, settings_.size, meeting_.secret, data_key(salt_), true, true});
}

Plane::~Plane() { leave(); }

void Plane::join() {
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    throw join_error(ErrorCode::system, settings_.rank, settings_.rank,
                     std::string("it cannot start its control thread: ") + error.what());
  }
  join_result_.get_future().get();
}

void Plane::run() {
  try {
    join_role_->start();
    tick();
    io_.run();
  } catch (
      const std::exception& failure) {  // out of memory or of descriptors: nobody is served any more, and all must know
    const std::string what = std::string("the control thread failed: ") + failure.what();
    log_.warn(what);
    if (lines_)
      hear({.kind = Notice::Kind::expelled, .peer = settings_.rank, .code = ErrorCode::system, .message = what});
    else
      join_failed(join_error(ErrorCode::system, settings_.rank, settings_.rank, what));
  }
}

void Plane::tick() {
  tick_timer_.expires_after(Pace::of(settings_.heartbeat_timeout).tick);
  tick_timer_.async_wait([this](error_code ec) {
    if (!ec) tick();
  });
  lines_ ? lines_->tick() : join_role_->tick(Clock::now());
  status_.tick();
}

// --- joining

std::unique_ptr<Control> join_at(const Settings& settings, Meeting meeting) {
  const auto refuse = [&](const std::string& why) {
    throw join_error(ErrorCode::system, settings.rank, settings.rank, "it cannot have a control plane: " + why);
  };
  std::unique_ptr<Plane> plane;
  try {
    const StandardStreamsTaken taken;  // while Asio makes descriptors
    plane = std::make_unique<Plane>(settings, std::move(meeting));
  } catch (const boost::system::system_error& error) {
    refuse(system_words(error.code().value()));
  }
  plane->join();
  return plane;
}

std::string Plane::data_key(const Digest& salt) const {
  return std::string(as_key(hmac_sha256(meeting_.secret, salt)));
}

// Nothing where this rank takes data at its meeting place, or over no network at all.
std::optional<Endpoint> Plane::address_to_listen_at(const std::optional<Endpoint>& own_end) const {
  if (settings_.transport == "shm" || (server_ && !meeting_.is_local())) return std::nullopt;
  const bool by_network = own_end && !own_end->is_local();
  if (!settings_.interface.empty())
    return find_interface(settings_.interface, by_network ? own_end->family() : AF_UNSPEC);
  if (by_network) return *own_end;
  // Ranks that have met at a local socket are all of this host: unless they are told otherwise, they need no network.
  if (meeting_.is_local() && settings_.transport == "auto" && !has_loopback()) return std::nullopt;
  return loopback();
}

Introduction Plane::introduce(const std::optional<Endpoint>& own_end) {
  Introduction own;
  own.size = settings_.size;
  own.timeout_ms = settings_.timeout.count();
  own.heartbeat_timeout_ms = settings_.heartbeat_timeout.count();
  own.transport = settings_.transport;
  own.attempt = settings_.attempt;
  Member& me = own.member;
  me.rank = settings_.rank;
  me.host_id = host_id();
  me.pid = ::getpid();
  me.started = start_of_process(me.pid);
  me.pid_space = own_pid_space();
  me.processors = topology::to_bits(topology::allowed_processors());
  me.obstacles = meeting_.announcement.obstacles;
  me.sees_gpus = meeting_.announcement.sees_gpus;
  me.local_name = "tutti-" + to_hex(random_digest());
  data_listeners_.push_back(listen_at(Endpoint::local(me.local_name)));
  std::optional<Endpoint> at;
  if (const auto address = address_to_listen_at(own_end)) {
    data_listeners_.push_back(listen_in(*address, settings_.port_first, settings_.port_last));
    at = internal::own_end(data_listeners_.back().fd());
  } else if (server_ && !meeting_.is_local()) {
    at = meeting_.places.front();
  }
  if (at) {
    me.address = at->address();
    me.port = at->port();
  }
  log_.info([&] {
    if (!at) return std::string("listens for other ranks on no network");
    const char* const why = !settings_.interface.empty()      ? "TUTTI_INTERFACE"
                            : server_ && !meeting_.is_local() ? "where the ranks meet"
                            : at->is_loopback()               ? "all ranks are on this host"
                                                              : "the way to rank 0";
    return "listens for other ranks at " + at->text() + " (" + why + ")";
  });
  return own;
}

void Plane::joined(const Table& table) {
  members_ = table.members;
  announced_ = table.announced;
  salt_ = table.salt;
  const std::string key = data_key(salt_);
  for (Socket& listener : std::exchange(data_listeners_, {}))
    acceptor_.open(std::move(listener), {settings_.rank, settings_.size, key, key, !server_, true});
  lines_ = std::make_unique<Lines>(io_, settings_.rank, members_, key, Pace::of(settings_.heartbeat_timeout),
                                   join_role_->take_links(), [this](Notice notice) { hear(std::move(notice)); });
  join_over_ = true;
  join_result_.set_value();
}

void Plane::join_failed(const Error& error) {
  if (std::exchange(join_over_, true)) return;
  const std::string text = error.what() + meeting_.advice_on(error.code);
  join_result_.set_exception(
      std::make_exception_ptr(Error(error.code, text, error.rank, error.peer, error.operation, error.step)));
}

// --- notices

void Plane::hear(Notice notice) {
  if (on_notice_)
    on_notice_(notice);
  else if (!leaving_)
    notices_.push_back(std::move(notice));
}

void Plane::on_notice(OnNotice handler) {
  asio::post(io_, [this, handler = std::move(handler)] {
    on_notice_ = handler;
    for (const Notice& notice : std::exchange(notices_, {})) on_notice_(notice);
  });
}

void Plane::poison(std::uint64_t communicator, ErrorCode code, int about, const std::string& message) {
  Notice notice;
  notice.kind = Notice::Kind::poisoned;
  notice.peer = settings_.rank;
  notice.communicator = communicator;
  notice.code = code;
  notice.about = about;
  notice.message = message.substr(0, kMaxPoisonText);
  const auto say = [this, notice] { lines_->ask([&](Seat& seat) { seat.request(notice, Clock::now()); }); };
  // Not post(): on the control thread that would put it behind what another thread posts now, such as the goodbye.
  if (io_.get_executor().running_in_this_thread()) return say();
  const auto said = std::make_shared<std::promise<void>>();
  asio::post(io_, [say, said] {
    say();
    said->set_value();
  });
  said->get_future().wait_for(kSayingWithin);
}

void Plane::probe(int peer, std::uint64_t communicator, std::uint64_t whole, std::uint32_t sequence) {
  asio::post(io_, [this, question = Probe{settings_.rank, peer, communicator, whole, sequence}] {
    lines_->ask([&](Seat& seat) { seat.request(question, Clock::now()); });
  });
}

void Plane::vote(Vote vote) {
  asio::post(io_,
             [this, vote = std::move(vote)] { lines_->ask([&](Seat& seat) { seat.request(vote, Clock::now()); }); });
}

void Plane::recall(std::uint64_t communicator, Vote::On on, std::uint32_t number) {
  asio::post(io_, [this, recall = Recall{communicator, on, number}] {
    lines_->ask([&](Seat& seat) { seat.request(recall, Clock::now()); });
  });
}

void Plane::survey(const std::vector<int>& peers, std::uint64_t communicator, std::uint64_t whole,
                   std::uint32_t sequence) {
  asio::post(io_, [this, survey = Survey{communicator, whole, sequence, {peers.begin(), peers.end()}}] {
    lines_->ask([&](Seat& seat) { seat.request(survey, Clock::now()); });
  });
}

void Plane::stranger(const std::string& what) {
  ++unreported_strangers_;
  const Clock::time_point now = Clock::now();
  if (now - last_complaint_ < std::chrono::seconds(1)) return;
  last_complaint_ = now;
  const int others = std::exchange(unreported_strangers_, 0) - 1;
  log_.warn(what + (others > 0 ? " (and " + std::to_string(others) + " more before)" : ""));
}

void Plane::publish(std::uint64_t communicator, std::shared_ptr<const CallHistory> history) {
  asio::post(io_, [this, communicator, history = std::move(history)] {
    lines_->ask([&](Seat& seat) { seat.histories().publish(communicator, history); });
  });
}

void Plane::unpublish(std::uint64_t communicator) {
  asio::post(io_, [this, communicator] { lines_->ask([&](Seat& seat) { seat.histories().unpublish(communicator); }); });
}

void Plane::farewell(Farewell farewell) {
  farewell.rank = settings_.rank;
  asio::post(io_, [this, farewell] { lines_->ask([&](Seat& seat) { seat.request(farewell, Clock::now()); }); });
}

std::string Plane::serve_status(StatusSource source) {
  const std::string job = number_of_job(salt_);
  asio::post(io_, [this, job, source = std::move(source)] {
    if (!leaving_) status_.open(status_name(job, settings_.rank), settings_.dump_signal, source);
  });
  return job;
}

// --- the end

void Plane::leave() {
  std::call_once(left_, [this] {
    asio::post(io_, [this] { depart(); });
    if (thread_.joinable()) thread_.join();
  });
}

void Plane::depart() {
  leaving_ = true;
  on_connection_ = nullptr;
  // Until then others may take this rank for the hub.
  const auto done = [this] {
    acceptor_.close();
    status_.close();
    io_.stop();
  };
  lines_ ? lines_->leave(done) : join_role_->leave(done);
}

}  // namespace tutti::internal
