#include <algorithm>

#include "base/seconds.h"
#include "control/join_sockets.h"

namespace tutti::internal {

namespace asio = boost::asio;
using std::chrono::milliseconds;

namespace {

// How long a connection that is told something final stays to be closed by the other end.
constexpr milliseconds kHubLingers{1000};
// How long rank 0 stays at most for ranks that come late, so that they hear why there is no job.
constexpr milliseconds kHubStays{5000};

}  // namespace

JoinServer::JoinServer(asio::io_context& io, const Settings& settings, const Meeting& meeting, const Digest& salt,
                       JoinUser& user)
    : io_(io),
      settings_(settings),
      meeting_(meeting),
      salt_(salt),
      user_(user),
      links_(static_cast<std::size_t>(settings.size)),
      timer_(io),
      warn_after_(settings.connect_timeout) {}

void JoinServer::start() {
  try {
    join_.emplace(user_.introduce(std::nullopt));
  } catch (const Error& error) {
    return refuse_all({error.code, 0, error.what()}, kHubStays);
  }
  timer_.expires_at(meeting_.deadline);
  timer_.async_wait([this](boost::system::error_code ec) {
    if (ec || is_complete_ || refusal_) return;
    Refusal refusal = join_->overdue(settings_.join_timeout);
    if (meeting_.secret.empty())
      refusal.message += "; as no secret is set, only processes of the same user on this host may join";
    refuse_all(refusal, milliseconds(0));
  });
}

void JoinServer::arrived(const std::shared_ptr<Link>& link) {
  link->on_message = [this, raw = link.get()](const ControlMessage& message) {
    first_words(raw->shared_from_this(), message);
  };
  link->on_closed = nullptr;
  link->carry_messages(FrameReader::kFromMember);
}

void JoinServer::first_words(const std::shared_ptr<Link>& link, const ControlMessage& message) {
  const int rank = link->handshake().opening().from;
  const auto* introduction = std::get_if<Introduction>(&message);
  if (const auto* refusal = std::get_if<Refusal>(&message); refusal && !is_complete_) {
    ++told_;  // it knows
    link->finish(kHubLingers);
    if (!refusal_) return refuse_all({refusal->code, rank, refusal->message}, kHubStays);
    if (all_told()) fail_after(milliseconds(0));
  } else if (!introduction || introduction->member.rank != rank) {
    link->close();
  } else if (const auto other = join_ ? join_->other_attempt(*introduction) : std::nullopt) {
    link->send(*other);
    link->finish(kHubLingers);
  } else if (refusal_) {
    refuse(link, *refusal_);
    if (all_told()) fail_after(milliseconds(0));
  } else if (is_complete_) {
    refuse(link, {ErrorCode::refused, rank,
                  "the job at " + meeting_.text() + " is complete and running: is rank " + std::to_string(rank) +
                      " started twice, or does another job use the same master?"});
  } else {
    admit(link, *introduction);
  }
}

void JoinServer::admit(const std::shared_ptr<Link>& link, const Introduction& introduction) {
  if (const auto refusal = join_->admit(introduction)) {
    refuse(link, *refusal);
    return refuse_all(*refusal, kHubStays);
  }
  const int rank = introduction.member.rank;
  links_[static_cast<std::size_t>(rank)] = link;
  link->on_message = [this, rank](const ControlMessage& message) { said(rank, message); };
  link->on_closed = [this, rank](const std::string& why) { closed(rank, why); };
  if (join_->complete()) return complete();
  link->send(Waiting{join_->missing()});
}

void JoinServer::turned_away(const std::string& why) {
  if (is_complete_) return;
  ++told_;
  if (!refusal_) return refuse_all({ErrorCode::system, 0, why}, kHubStays);
  if (all_told()) fail_after(milliseconds(0));
}

void JoinServer::complete() {
  timer_.cancel();
  const Announcement& announcement = meeting_.announcement;
  if (!announcement.error_text.empty())
    return refuse_all({ErrorCode::invalid_argument, 0, announcement.error_text}, kHubStays);
  const Table table{salt_, join_->members(), announcement.text};
  is_complete_ = true;
  for (const auto& link : links_)
    if (link) link->send(table);
  user_.joined(table);
}

void JoinServer::refuse(const std::shared_ptr<Link>& link, const Refusal& refusal) {
  ++told_;
  link->send(refusal);
  link->finish(kHubLingers);
}

// Rank 0 itself fails last: for up to `patience` it stays to tell ranks that are just arriving.
void JoinServer::refuse_all(const Refusal& refusal, milliseconds patience) {
  refusal_ = refusal;
  for (const auto& link : links_) {
    if (!link) continue;
    link->on_closed = nullptr;
    refuse(link, refusal);
  }
  const milliseconds stays = all_told() ? milliseconds(0) : std::min(patience, settings_.connect_timeout);
  if (stays.count() > 0)
    log_.warn(refusal.message + "; stays for up to " + in_seconds(stays) + " to tell ranks that come late");
  fail_after(stays);
}

void JoinServer::fail_after(milliseconds time) {
  timer_.expires_after(time);
  timer_.async_wait([this](boost::system::error_code ec) {
    if (!ec) user_.join_failed(join_error(refusal_->code, 0, refusal_->rank, refusal_->message));
  });
}

void JoinServer::warn(Clock::time_point now) {
  if (now - meeting_.started < warn_after_) return;
  const auto waited = std::chrono::duration_cast<std::chrono::seconds>(now - meeting_.started);
  log_.warn("waiting at " + meeting_.text() + " for " + join_->missing() + " since " + std::to_string(waited.count()) +
            " s (of at most " + in_seconds(settings_.join_timeout) + ")");
  warn_after_ *= 2;
}

void JoinServer::tick(Clock::time_point now) {
  if (is_complete_ || refusal_ || !join_) return;
  for (const auto& link : links_)
    if (link) link->send(Waiting{join_->missing()});
  warn(now);
}

void JoinServer::said(int rank, const ControlMessage& message) {
  if (std::holds_alternative<Goodbye>(message)) closed(rank, "it gave up");
}

void JoinServer::closed(int rank, const std::string& why) {
  if (refusal_) return;
  links_[static_cast<std::size_t>(rank)] = nullptr;
  ++told_;  // it hears nothing more
  refuse_all(join_->gone(rank, why), kHubStays);
}

std::vector<std::shared_ptr<Link>> JoinServer::take_links() { return std::exchange(links_, {}); }

void JoinServer::leave(std::function<void()> done) { done(); }

}  // namespace tutti::internal
