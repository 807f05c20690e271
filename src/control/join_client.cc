#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>

#include "base/descriptor.h"
#include "base/seconds.h"
#include "control/join_sockets.h"

namespace tutti::internal {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr std::chrono::milliseconds kLinger{1000};
// Rank 0 ends a join that takes too long, and knows who is missing; a member waits this much longer to hear it.
constexpr std::chrono::milliseconds kGrace{1000};

std::string secret_advice(int rank) {
  const std::string name = std::to_string(rank);
  return "the secret of rank " + name +
         " differs from rank 0's: check TUTTI_SECRET, TUTTI_SECRET_FILE and ~/.config/tutti/secret where rank 0 and "
         "rank " +
         name + " run";
}

}  // namespace

JoinClient::JoinClient(asio::io_context& io, const Settings& settings, const Meeting& meeting, JoinUser& user)
    : io_(io),
      settings_(settings),
      meeting_(meeting),
      user_(user),
      joiner_(settings.rank, settings.size),
      deadline_(io),
      pause_(io),
      warn_after_(settings.connect_timeout) {}

void JoinClient::start() {
  // A rank that cannot be one of the job goes there only to let rank 0 tell the others.
  deadline_.expires_at(is_outside() ? std::min(meeting_.deadline, Clock::now() + settings_.connect_timeout)
                                    : meeting_.deadline);
  deadline_.async_wait([this](error_code ec) {
    if (!ec) overdue();
  });
  attempt();
}

void JoinClient::attempt() {
  int error = 0;
  Socket socket = start_connecting(place(), error);
  if (is_out_of_descriptors(error))
    return fail(join_error(ErrorCode::system, settings_.rank, settings_.rank,
                           "no descriptor is left for its connection to rank 0: " + system_words(error)));
  if (error != 0 && error != EINPROGRESS) return attempt_failed(Handshake::Failure::none, system_words(error));
  if (place().is_local() && !is_same_user(socket.fd()))
    return fail(join_error(ErrorCode::refused, settings_.rank, 0,
                           "another user's process listens at " + place().text() + ": choose another port"));
  link_ = std::make_shared<Link>(
      io_, std::move(socket),
      Handshake::connecting({Handshake::Purpose::control, settings_.rank, 0, 0}, meeting_.secret, random_digest()));
  link_->on_authenticated = [this] { introduce(); };
  link_->on_closed = [this](const std::string& why) { attempt_failed(link_->handshake().failure(), why); };
  link_->start(error == EINPROGRESS, settings_.connect_timeout, settings_.connect_timeout);
}

// Rank 0 may not be there yet, so most failures are tried again; those that time does not heal are not.
void JoinClient::attempt_failed(Handshake::Failure failure, const std::string& why) {
  if (over_) return;
  const Clock::time_point now = Clock::now();
  const std::string at = " at " + place().text();
  if (failure == Handshake::Failure::wrong_secret)
    return fail(join_error(ErrorCode::refused, settings_.rank, 0, secret_advice(settings_.rank)));
  if (failure == Handshake::Failure::not_tutti) {
    if (!strange_since_) strange_since_ = now;
    if (now - *strange_since_ >= settings_.connect_timeout)
      return fail(join_error(ErrorCode::unreachable, settings_.rank, 0,
                             "what listens" + at + " is not rank 0: " + why + "; check the master's port"));
  } else if (failure != Handshake::Failure::none) {
    return fail(join_error(ErrorCode::refused, settings_.rank, 0, "rank 0" + at + " cannot be joined: " + why));
  }
  last_error_ = why;
  ++attempts_;
  const bool round_over = attempts_ % meeting_.places.size() == 0;
  const auto delay = std::chrono::milliseconds(std::min<std::size_t>(10 * attempts_, 250));
  pause_.expires_after(round_over ? delay : std::chrono::milliseconds(0));
  pause_.async_wait([this](error_code ec) {
    if (!ec && !over_) attempt();
  });
}

void JoinClient::introduce() {
  deadline_.expires_at(meeting_.deadline + kGrace);
  deadline_.async_wait([this](error_code ec) {
    if (!ec) overdue();
  });
  link_->on_message = [this](const ControlMessage& message) { received(message); };
  link_->on_closed = [this](const std::string& why) { closed(why); };
  link_->carry_messages(FrameReader::kFromHub);
  try {
    if (!introduction_) {
      last_error_.clear();  // of the time before rank 0 could be reached
      introduction_ = user_.introduce(link_->own_end());
    }
    link_->send(*introduction_);
  } catch (const Error& error) {
    const Error told = join_error(error.code, settings_.rank, -1, error.what());
    link_->send(Refusal{error.code, settings_.rank, told.what()});
    fail(told);
  }
}

void JoinClient::received(const ControlMessage& message) {
  joiner_.received(message);
  if (!joiner_.try_again().empty()) return try_again();
  last_error_.clear();  // of ranks 0 that have put this rank off: this one has not
  if (joiner_.error()) return fail(*joiner_.error());
  if (!joiner_.table()) return;
  over_ = true;
  deadline_.cancel();
  Table table = *joiner_.table();
  if (const Endpoint server = link_->other_end(); !server.is_local()) {
    // Rank 0 takes data where it takes us: an address that is known to be reached from here.
    table.members[0].address = server.address();
    table.members[0].port = server.port();
  }
  user_.joined(table);
}

void JoinClient::closed(const std::string& why) {
  joiner_.closed(why);
  if (!joiner_.try_again().empty()) return try_again();
  fail(*joiner_.error());
}

void JoinClient::try_again() {
  const std::string why = joiner_.try_again();
  joiner_ = Joiner(settings_.rank, settings_.size);
  link_->close();
  attempt_failed(Handshake::Failure::none, why);
}

void JoinClient::overdue() {
  if (over_) return;
  // A rank that was put off, and has no answer to its next attempt yet, says why it was put off.
  if (is_introduced() && last_error_.empty()) return fail(joiner_.overdue(settings_.join_timeout));
  if (is_outside())
    return fail(join_error(ErrorCode::invalid_argument, settings_.rank, settings_.rank,
                           "rank " + std::to_string(settings_.rank) + outside(settings_.size) +
                               "; rank 0, which would tell the others, did not answer at " + meeting_.text()));
  fail(join_error(ErrorCode::unreachable, settings_.rank, 0,
                  "rank 0 could not be reached at " + meeting_.text() + " within " +
                      in_seconds(settings_.join_timeout) + " (" + (last_error_.empty() ? "no answer" : last_error_) +
                      "): is rank 0 running there, are address and port right (MASTER_ADDR and MASTER_PORT, or "
                      "TUTTI_MASTER), does a firewall let them through?"));
}

void JoinClient::fail(const Error& error) {
  if (std::exchange(over_, true)) return;
  deadline_.cancel();
  pause_.cancel();
  user_.join_failed(error);
}

std::vector<std::shared_ptr<Link>> JoinClient::take_links() { return {std::exchange(link_, nullptr)}; }

void JoinClient::tick(Clock::time_point now) {
  if (is_introduced() || over_ || now - meeting_.started < warn_after_) return;
  warn_after_ *= 2;
  log_.warn("rank 0 does not answer at " + meeting_.text() + " yet (" +
            (last_error_.empty() ? "no answer" : last_error_) + "), trying for " + in_seconds(settings_.join_timeout) +
            " in all");
}

void JoinClient::leave(std::function<void()> done) {
  over_ = true;
  deadline_.cancel();
  pause_.cancel();
  if (!is_introduced()) return done();
  link_->on_message = nullptr;
  link_->on_closed = [done](const std::string&) { done(); };
  link_->send(Goodbye{});
  deadline_.expires_after(std::min(kLinger, settings_.connect_timeout));
  deadline_.async_wait([this, done](error_code ec) {
    if (ec) return;
    link_->close();
    done();
  });
}

}  // namespace tutti::internal
