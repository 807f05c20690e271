// How a join begins: the place where the ranks meet is found, at an address or through a store.
#include "control/join_job.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>

#include "base/seconds.h"
#include "control/env.h"
#include "control/join.h"
#include "control/meeting.h"
#include "net/secret.h"

namespace tutti::internal {
namespace {

using std::chrono::milliseconds;

// --- a job of one: no socket, no thread

class Alone final : public Control {
 public:
  explicit Alone(Announcement announcement) : announced_(std::move(announcement.text)) {
    members_[0].host_id = host_id();
    members_[0].pid = ::getpid();
  }
  const std::vector<Member>& members() const override { return members_; }
  int rank() const override { return 0; }
  const std::string& announced() const override { return announced_; }
  std::string serve_status(StatusSource) override { return std::to_string(members_[0].pid); }  // nobody can ask it
  void leave() override {}
  void on_connection(OnConnection) override {}
  void connect(int, Path, std::uint64_t) override {}
  void on_notice(OnNotice handler) override { hear_ = std::move(handler); }
  void poison(std::uint64_t communicator, ErrorCode code, int about, const std::string& message) override {
    hear_({.kind = Notice::Kind::poisoned,
           .peer = 0,
           .communicator = communicator,
           .code = code,
           .message = message,
           .about = about});
  }
  void probe(int, std::uint64_t, std::uint64_t, std::uint32_t) override {}
  void vote(Vote vote) override {
    hear_({.kind = Notice::Kind::decided,
           .peer = 0,
           .communicator = vote.communicator,
           .on = vote.on,
           .ranks = vote.ranks});
  }
  void recall(std::uint64_t, Vote::On, std::uint32_t) override {}
  void survey(const std::vector<int>&, std::uint64_t, std::uint64_t, std::uint32_t) override {}
  void publish(std::uint64_t, std::shared_ptr<const CallHistory>) override {}
  void unpublish(std::uint64_t) override {}
  void farewell(Farewell) override {}

 private:
  std::vector<Member> members_ = std::vector<Member>(1);
  std::string announced_;
  OnNotice hear_;
};

// --- meeting at the master's address

Endpoint local_place(const Settings& settings) {
  return Endpoint::local("tutti-" + std::to_string(::geteuid()) + "-" + std::to_string(settings.master_port));
}

void listen_at_places(Meeting& meeting) {
  std::exception_ptr first_failure;
  std::vector<Endpoint> listening;
  for (const Endpoint& place : meeting.places) try {
      meeting.listeners.push_back(listen_at(place));
      listening.push_back(place);
    } catch (const Error&) {
      if (!first_failure) first_failure = std::current_exception();
    }
  if (listening.empty()) std::rethrow_exception(first_failure);
  meeting.places = listening;
}

// --- meeting where it was agreed before

void meet_at(Appointment appointment, Meeting& meeting) {
  if (!has_route_to(appointment.place))
    throw Error(ErrorCode::system, "the ranks meet at " + appointment.place.text() +
                                       ", to which this host has no route: are its network interfaces up?");
  meeting.secret = std::move(appointment.secret);
  meeting.places = {appointment.place};
  if (appointment.listener) meeting.listeners.push_back(std::move(appointment.listener));
}

// --- meeting through a store

class Meeter {
 public:
  Meeter(const Settings& settings, Store& store, const StoreJoin& join, Meeting& meeting)
      : settings_(settings), store_(store), keys_("tutti/" + std::to_string(join.number) + "/"), meeting_(meeting) {
    if (join.counted_by_store) {
      meeting_.if_missed = "; the store has counted that this is join " + std::to_string(join.number) + " of rank " +
                           std::to_string(settings.rank) +
                           ": every rank must have begun as many joins there, those that failed included";
    } else {
      meeting_.if_stale = "; the ranks meet through a store: if it still holds the keys of an earlier join (" + keys_ +
                          "...), use another store or another prefix of keys for each job, or a store that can add";
    }
  }

  // Rank 0 says in the store where it listens, and with what secret unless everyone is configured with one.
  void as_master() {
    try {
      const Endpoint address = settings_.interface.empty() ? (all_on_this_host() ? loopback() : outward())
                                                           : find_interface(settings_.interface);
      meeting_.listeners.push_back(listen_in(address, settings_.port_first, settings_.port_last));
      meeting_.places = {own_end(meeting_.listeners.back().fd())};
      meeting_.secret = settings_.secret.empty() ? to_hex(random_digest()) : settings_.secret;
      store_.set(keys_ + kSecret, settings_.secret.empty() ? meeting_.secret : "");
      store_.set(keys_ + kAddress,
                 meeting_.places.front().address() + " " + std::to_string(meeting_.places.front().port()));
    } catch (const Error& error) {
      // So that the others need not wait.
      store_.set(keys_ + kAddress, "!" + std::to_string(static_cast<int>(error.code)) + " " + error.what());
      throw;
    }
  }

  void as_member() {
    store_.set(keys_ + host_key(settings_.rank), host_id() + " " + std::to_string(settings_.size));
    const std::string where = get(kAddress, "rank 0 did not say in the store where it is");
    const std::size_t space = where.find(' ');
    const std::string address = where.substr(0, space),
                      rest = space == std::string::npos ? "" : where.substr(space + 1);
    if (address.starts_with('!'))
      throw join_error(static_cast<ErrorCode>(std::atoi(address.c_str() + 1)), settings_.rank, 0,
                       rest + meeting_.if_stale);
    const auto place = Endpoint::parse(address, static_cast<std::uint16_t>(std::atoi(rest.c_str())));
    if (!place || place->port() == 0)
      throw Error(ErrorCode::refused, "the store holds no address of rank 0 but '" + where + "'");
    meeting_.places = {*place};
    const std::string offered = get(kSecret, "rank 0 did not put its secret in the store");
    meeting_.secret = settings_.secret.empty() ? offered : settings_.secret;
    if (meeting_.secret.empty())
      throw join_error(ErrorCode::refused, settings_.rank, 0,
                       "rank 0 has a secret (Settings::secret, TUTTI_SECRET) and this rank has none: give it the same");
  }

 private:
  // The world size travels along, as rank 0 would wait here for ranks that nobody has started.
  bool all_on_this_host() {
    const std::string here = host_id() + " ";
    bool all = true;
    for (int rank = 1; rank < settings_.size; ++rank) {
      const std::string name = "rank " + std::to_string(rank);
      const std::string said = get(host_key(rank), name + " did not come");
      const std::string size = said.substr(said.find(' ') + 1);
      if (size != std::to_string(settings_.size))
        throw join_error(ErrorCode::invalid_argument, settings_.rank, rank,
                         name + " says that the job has " + size + " ranks, rank 0 says " +
                             std::to_string(settings_.size) + ": start every rank with the same world size" +
                             meeting_.if_stale);
      all = all && said.starts_with(here);
    }
    return all;
  }

  std::string get(const std::string& key, const std::string& otherwise) {
    // The other ranks wait a little longer than rank 0, which knows more about what is missing. A rank that cannot be
    // one of the job is here only to let rank 0 tell the others.
    const auto grace = settings_.rank == 0 ? Clock::duration(0) : std::chrono::seconds(1);
    const auto most = std::chrono::duration_cast<milliseconds>(meeting_.deadline + grace - Clock::now());
    const bool is_outside = settings_.rank >= settings_.size;
    const auto left = is_outside ? std::min(most, settings_.connect_timeout) : most;
    try {
      return store_.get(keys_ + key, std::max(left, milliseconds(1)));
    } catch (const std::exception& failure) {
      if (is_outside)
        throw join_error(ErrorCode::invalid_argument, settings_.rank, settings_.rank,
                         "rank " + std::to_string(settings_.rank) + outside(settings_.size) + "; " + otherwise);
      throw join_error(ErrorCode::timeout, settings_.rank, -1,
                       otherwise + " within " + in_seconds(settings_.join_timeout) + " (the store: " + failure.what() +
                           ")" + meeting_.advice_on(ErrorCode::timeout));
    }
  }

  static std::string host_key(int rank) { return "host/" + std::to_string(rank); }
  static constexpr char kAddress[] = "address";
  static constexpr char kSecret[] = "secret";

  const Settings& settings_;
  Store& store_;
  const std::string keys_;  // how they begin
  Meeting& meeting_;
};

}  // namespace

Meeting meet_at_master(const Settings& settings) {
  Meeting meeting;
  meeting.started = Clock::now();
  meeting.deadline = meeting.started + settings.join_timeout;
  if (settings.master_port == 0)
    throw Error(
        ErrorCode::invalid_argument,
        "the port where the ranks meet is not set: start the program with `tutti run`, torchrun, mpirun or srun, or "
        "set TUTTI_MASTER=host:port");
  const std::string host = without_brackets(settings.master_address);
  meeting.secret = settings.secret;
  if (!host.empty()) meeting.places = resolve(host, settings.master_port);
  if (host.empty()) {
    meeting.places = {local_place(settings)};
  } else if (settings.secret.empty()) {
    if (std::none_of(meeting.places.begin(), meeting.places.end(), &is_of_this_host))
      throw Error(ErrorCode::refused,
                  "the ranks meet at " + meeting.text() +
                      ", on another host, but there is no secret to let them in by: set the same TUTTI_SECRET or "
                      "TUTTI_SECRET_FILE on every rank, or put ~/.config/tutti/secret (mode 0600) on every host");
    meeting.places = {local_place(settings)};
  } else if (std::none_of(meeting.places.begin(), meeting.places.end(),
                          [](const Endpoint& place) { return !place.is_loopback() || has_route_to(place); })) {
    throw Error(ErrorCode::system, "the ranks meet at " + meeting.text() +
                                       ", which this host's loopback interface does not reach: is it up (`ip link set "
                                       "lo up`)? Ranks of one host can meet without it (TUTTI_MASTER=:" +
                                       std::to_string(settings.master_port) + ")");
  } else if (settings.rank == 0 && !settings.interface.empty()) {
    const Endpoint here = find_interface(settings.interface, meeting.places.front().family());
    if (const auto told = Endpoint::parse(host, settings.master_port); told && told->address() != here.address())
      throw Error(ErrorCode::invalid_argument, "rank 0 is to listen at " + here.address() +
                                                   " (TUTTI_INTERFACE), but the ranks are told to meet at " +
                                                   told->address() + ": nobody could reach it");
    meeting.places = {here.with_port(settings.master_port)};
  }
  if (settings.rank == 0) listen_at_places(meeting);
  return meeting;
}

std::unique_ptr<Control> join_job(const Settings& settings, Store* store, StoreJoin join, Announcement announcement,
                                  std::optional<Appointment> appointment) {
  if (announcement.text.size() > kMaxAnnouncedBytes)
    announcement.error_text = "rank 0 has " + std::to_string(announcement.text.size()) +
                              " bytes to announce, more than " + std::to_string(kMaxAnnouncedBytes);
  if (settings.size == 1) {
    if (!announcement.error_text.empty()) throw join_error(ErrorCode::invalid_argument, 0, 0, announcement.error_text);
    return std::make_unique<Alone>(std::move(announcement));
  }
  if (!appointment && !store) {
    Meeting meeting = meet_at_master(settings);
    meeting.announcement = std::move(announcement);
    return join_at(settings, std::move(meeting));
  }
  Meeting meeting;
  meeting.announcement = std::move(announcement);
  meeting.started = Clock::now();
  meeting.deadline = meeting.started + settings.join_timeout;
  if (appointment)
    meet_at(*std::move(appointment), meeting);
  else if (settings.rank == 0)
    Meeter(settings, *store, join, meeting).as_master();
  else
    Meeter(settings, *store, join, meeting).as_member();
  return join_at(settings, std::move(meeting));
}

}  // namespace tutti::internal
