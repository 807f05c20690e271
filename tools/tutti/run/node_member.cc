#include "run/node_member.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/descriptor.h"
#include "base/seconds.h"
#include "net/secret.h"
#include "run/node_time.h"

namespace tutti::internal::tools {
namespace {

using Kind = NodeMessage::Kind;

constexpr std::chrono::milliseconds kLongestPause{250};  // between two tries to reach node 0
constexpr std::chrono::seconds kForAnswer{2};            // of node 0, where the user of this host has ended the job

}  // namespace

NodeMember::NodeMember(const Settings& settings, Meeting meeting, std::string options)
    : settings_(settings),
      meeting_(std::move(meeting)),
      options_(std::move(options)),
      warn_after_(settings.connect_timeout) {}

void NodeMember::await(std::vector<pollfd>& fds, int& timeout_ms) {
  const auto now = Clock::now();
  fds.push_back(link_ ? link_->wanted() : pollfd{-1, 0, 0});
  if (over_) return;
  shorten(timeout_ms, now, next_tick_);
  if (!link_) shorten(timeout_ms, now, connect_at_);
  if (stopped_ && answer_by_ != Clock::time_point::max()) shorten(timeout_ms, now, answer_by_);
}

void NodeMember::serve(std::span<const pollfd> polled) {
  if (over_) return;
  if (link_) link_->serve(polled.front().revents);
  if (!link_ && Clock::now() >= connect_at_) connect();
  if (link_) hear();
  tick();
}

void NodeMember::connect() {
  const Endpoint& place = meeting_.places[attempts_ % meeting_.places.size()];
  int error = 0;
  Socket socket = start_connecting(place, error);
  if (error != 0 && error != EINPROGRESS) return connect_again(system_words(error));
  if (place.is_local() && !is_same_user(socket.fd()))
    return end(fmt::format("another user's process listens at {}: choose another port", place.text()));
  const Handshake::Opening opening{Handshake::Purpose::launcher, settings_.rank, 0, 0};
  link_ = std::make_unique<NodeLink>(
      std::move(socket), Handshake::connecting(opening, meeting_.secret, random_digest()), error == EINPROGRESS);
  answer_by_ = Clock::now() + settings_.connect_timeout;
}

// Node 0 may not be there yet.
void NodeMember::connect_again(std::string why) {
  link_.reset();
  answer_by_ = Clock::time_point::max();
  last_error_ = std::move(why);
  ++attempts_;
  const auto pause = std::min<Clock::duration>(std::chrono::milliseconds(10 * attempts_), kLongestPause);
  connect_at_ = Clock::now() + pause;
}

void NodeMember::refused() {
  switch (link_->handshake().failure()) {
    case Handshake::Failure::none:
    case Handshake::Failure::not_tutti:
    case Handshake::Failure::not_wanted: return connect_again(link_->why_closed());
    case Handshake::Failure::wrong_secret:
      return end(
          fmt::format("the secret of node {0} differs from node 0's: check TUTTI_SECRET, TUTTI_SECRET_FILE and "
                      "~/.config/tutti/secret where node 0 and node {0} run",
                      settings_.rank));
    default: return end(fmt::format("the launcher of node 0 cannot be joined: {}", link_->why_closed()));
  }
}

void NodeMember::hear() {
  if (!arrived_ && link_->is_open() && link_->handshake().done()) {
    arrived_ = true;
    answer_by_ = Clock::time_point::max();
    link_->send({Kind::arrival, 0, 0, options_});
  }
  while (!over_) {
    const auto message = link_->next();
    if (!message) break;
    orders_.push_back(*message);
    if (message->kind == Kind::start) running_ = true;
    over_ = message->kind == Kind::over;
  }
  if (over_) return link_->close("the job is over");
  if (!link_->is_open()) {
    if (!arrived_) return refused();
    end(fmt::format("the job has failed: node 0 is lost ({})", link_->why_closed()));
  }
}

void NodeMember::tick() {
  const auto now = Clock::now();
  if (!over_ && now >= answer_by_) {
    if (stopped_) return end("");
    connect_again("it did not answer in time");
  }
  if (over_ || now < next_tick_) return;
  const auto stopped = stopped_for(settings_, now - next_tick_);
  next_tick_ = now + tick_of(settings_);
  if (!arrived_) return wait_on();
  const auto silence = silence_of(settings_);
  link_->forgive(stopped);
  link_->send({});
  if (now - link_->heard() < silence) return;
  end(fmt::format("the job has failed: node 0 is lost ({})", silent_for(silence)));
}

// Node 0 has not been reached yet.
void NodeMember::wait_on() {
  const std::string why = last_error_.empty() ? "no answer" : last_error_;
  const auto now = Clock::now();
  if (now >= meeting_.deadline) {
    end(fmt::format(
        "the launcher of node 0 could not be reached at {} within {} ({}): is `tutti run` running there, with the same "
        "--master-port and --max-restarts? Does a firewall let this port through? (TUTTI_JOIN_TIMEOUT)",
        meeting_.text(), internal::in_seconds(settings_.join_timeout), why));
    return;
  }
  const auto waited = now - meeting_.started;
  if (waited < warn_after_) return;
  warn_after_ *= 2;
  orders_.push_back({Kind::ping, 0, 0,
                     fmt::format("waiting for the launcher of node 0 at {} since {} ({})", meeting_.text(),
                                 whole_seconds(waited), why)});
}

void NodeMember::say(const NodeMessage& message) {
  if (over_) return;
  if (message.kind == Kind::ended) running_ = false;
  if (message.kind == Kind::stop) stopped_ = true;
  if (!arrived_) return stopped_ ? end("") : void();
  link_->send(message);
  if (stopped_ && !running_) answer_by_ = Clock::now() + kForAnswer;
}

void NodeMember::end(const std::string& words) {
  over_ = true;
  if (link_) link_->close(words);
  orders_.push_back({Kind::over, 0, 1, words});
}

std::optional<NodeMessage> NodeMember::next() {
  if (orders_.empty()) return std::nullopt;
  const NodeMessage message = orders_.front();
  orders_.pop_front();
  return message;
}

}  // namespace tutti::internal::tools
