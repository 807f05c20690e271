#include "run/node_zero.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/seconds.h"
#include "net/secret.h"
#include "run/node_time.h"

namespace tutti::internal::tools {
namespace {

constexpr std::size_t kStrangers = 64;                  // that may be shaking hands beside the nodes of the job
constexpr std::chrono::milliseconds kAcceptPause{100};  // where no descriptor is left for a connection
constexpr std::chrono::seconds kLinger{1};              // for the others to have heard that the job is over

NodeMessage dismissal(const std::string& words) { return {NodeMessage::Kind::over, 0, 1, words}; }

}  // namespace

NodeZero::NodeZero(Course course) : course_(std::move(course)), links_(1) { give_orders(); }

NodeZero::NodeZero(Course course, const Settings& settings, Meeting meeting)
    : course_(std::move(course)),
      settings_(settings),
      meeting_(std::move(meeting)),
      links_(static_cast<std::size_t>(course_.nodes())),
      warn_after_(settings.connect_timeout) {
  give_orders();
}

void NodeZero::await(std::vector<pollfd>& fds, int& timeout_ms) {
  if (links_.size() == 1) return;
  const auto now = Clock::now();
  shorten(timeout_ms, now, next_tick_);
  const bool accepts = now >= accept_again_;
  if (!accepts) shorten(timeout_ms, now, accept_again_);
  if (linger_until_) shorten(timeout_ms, now, *linger_until_);
  for (const Socket& listener : meeting_.listeners) fds.push_back({accepts ? listener.fd() : -1, POLLIN, 0});
  for (const Caller& caller : callers_) {
    fds.push_back(caller.link->wanted());
    shorten(timeout_ms, now, caller.deadline);
  }
  for (const Link& link : links_) fds.push_back(link ? link->wanted() : pollfd{-1, 0, 0});
}

void NodeZero::serve(std::span<const pollfd> polled) {
  if (links_.size() == 1) return;
  auto at = polled.begin() + static_cast<std::ptrdiff_t>(meeting_.listeners.size());
  for (const Caller& caller : callers_) caller.link->serve(at++->revents);
  for (const Link& link : links_) {
    const short events = at++->revents;
    if (link) link->serve(events);
  }
  for (std::size_t i = 0; i < meeting_.listeners.size(); ++i)
    if (polled[i].revents != 0) accept_at(meeting_.listeners[i].fd());
  hear_callers();
  hear_nodes();
  tick();
  give_orders();
}

void NodeZero::accept_at(int listener) {
  int error = 0;
  Socket socket = accept_from(listener, error);
  if (!socket) {
    if (error != EAGAIN && error != EINTR) accept_again_ = Clock::now() + kAcceptPause;
    return;
  }
  if (meeting_.is_local() && !is_same_user(socket.fd())) return;
  if (callers_.size() >= links_.size() + kStrangers) callers_.pop_front();
  Handshake::AcceptPolicy policy;
  policy.size = course_.nodes();
  policy.control_key = meeting_.secret;
  policy.takes_launchers = true;
  callers_.push_back(
      {std::make_unique<NodeLink>(std::move(socket), Handshake::accepting(policy, random_digest()), false),
       Clock::now() + settings_.connect_timeout});
}

void NodeZero::hear_callers() {
  const auto now = Clock::now();
  for (Caller& caller : callers_)
    if (!caller.is_over) hear(caller);
  std::erase_if(callers_, [now](const Caller& caller) {
    return !caller.link || !caller.link->is_open() || now >= caller.deadline;
  });
}

// The first message says which node it is; a second launcher of a node is turned away and does no harm.
void NodeZero::hear(Caller& caller) {
  const auto message = caller.link->next();
  if (!message) return;
  caller.is_over = true;
  const int node = caller.link->handshake().opening().from;
  const std::string objection = objection_to(node);
  if (message->kind != NodeMessage::Kind::arrival) return caller.link->close("it did not say who it is");
  if (!objection.empty()) {
    caller.link->send(dismissal(objection));
    return caller.link->finish();
  }
  links_[static_cast<std::size_t>(node)] = std::move(caller.link);
  course_.received(node, *message);
}

std::string NodeZero::objection_to(int node) const {
  if (node <= 0 || node >= course_.nodes())
    return fmt::format("node {} is none of this job, which node 0 has started with `{}`", node, course_.options());
  if (links_[static_cast<std::size_t>(node)])
    return fmt::format(
        "node {0} is there already: was its launcher started twice? Give every host a --node-rank of its own", node);
  return course_.is_gathering() ? "" : "the job is running, or over, without this launcher";
}

void NodeZero::hear_nodes() {
  for (int node = 1; node < course_.nodes(); ++node) {
    Link& link = links_[static_cast<std::size_t>(node)];
    if (!link) continue;
    while (const auto message = link->next()) course_.received(node, *message);
    if (link->is_open()) continue;
    course_.lost(node, link->why_closed());
    link.reset();
  }
}

void NodeZero::tick() {
  const auto now = Clock::now();
  if (now < next_tick_) return;
  const auto stopped = stopped_for(settings_, now - next_tick_);
  next_tick_ = now + tick_of(settings_);
  const auto silence = silence_of(settings_);
  for (const Link& link : links_) {
    if (!link) continue;
    link->forgive(stopped);
    link->send({});
    if (now - link->heard() >= silence) link->close(silent_for(silence));
  }
  hear_nodes();
  if (!course_.is_gathering()) return;
  if (now >= meeting_.deadline) return course_.overdue(internal::in_seconds(settings_.join_timeout));
  if (const auto waited = now - meeting_.started; waited >= warn_after_) {
    course_.warn(whole_seconds(waited));
    warn_after_ *= 2;
  }
}

void NodeZero::give_orders() {
  for (const auto& [node, message] : course_.take_outgoing()) {
    const bool is_over = message.kind == NodeMessage::Kind::over;
    if (node == 0) {
      own_.push_back(message);
      if (is_over) linger_until_ = Clock::now() + kLinger;
      continue;
    }
    const Link& link = links_[static_cast<std::size_t>(node)];
    if (!link) continue;
    link->send(message);
    if (is_over) link->finish();
  }
}

void NodeZero::say(const NodeMessage& message) {
  course_.received(0, message);
  give_orders();
}

bool NodeZero::has_links() const {
  return std::ranges::any_of(links_, [](const Link& link) { return link != nullptr; }) ||
         std::ranges::any_of(callers_, &Caller::is_over);
}

// Node 0 goes last: the others close their connections when they have heard that the job is over.
std::optional<NodeMessage> NodeZero::next() {
  if (own_.empty()) return std::nullopt;
  if (own_.front().kind == NodeMessage::Kind::over && has_links() && Clock::now() < *linger_until_) return std::nullopt;
  const NodeMessage message = own_.front();
  own_.pop_front();
  return message;
}

}  // namespace tutti::internal::tools
