#include "run/attempt.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "run/descendants.h"

namespace tutti::internal::tools {
namespace {

using namespace std::chrono_literals;

constexpr auto kGrace = 3s;        // for ranks to notice by themselves: the library tells them within a second
constexpr auto kTermGrace = 2s;    // between SIGTERM and SIGKILL
constexpr auto kStragglers = 1s;   // for children of ranks (a `tee`) to end after the last rank has
constexpr auto kClearing = 5s;     // for killed children to go
constexpr auto kReaderGrace = 2s;  // for who reads the output of a job that was ended to take some more of it

std::string how_it_ended(int status) {
  if (WIFEXITED(status)) return fmt::format("exited with status {}", WEXITSTATUS(status));
  return fmt::format("was killed by signal {} ({}){}", WTERMSIG(status), strsignal(WTERMSIG(status)),
                     WCOREDUMP(status) ? ", core dumped" : "");
}

}  // namespace

std::optional<int> Attempt::run() {
  while (stage_ != Stage::over) {
    hear_nodes();
    if (stage_ != Stage::over) watch();
  }
  if (job_status_) return job_status_;
  take_reports();  // what a rank sent, it sent before it ended
  const bool all_failed = job_.keep_going && !ranks_.has_any_succeeded();
  const int status = status_ == 0 && (all_failed || reported_ || output_.has_failed()) ? 1 : status_;
  guardian_.nodes.say({NodeMessage::Kind::ended, number_, status, ""});
  return std::nullopt;
}

void Attempt::start_all(int number) {
  number_ = number;
  if (interrupted_) {  // the order has crossed what was said of that
    guardian_.nodes.say({NodeMessage::Kind::ended, number_, 1, ""});
    return;
  }
  if (number_ > 0) output_.say(fmt::format("starting all ranks again ({} of {})", number_, job_.max_restarts));
  stage_ = Stage::running;
  for (int index = 0; index < job_.ranks; ++index) {
    status_ = ranks_.start(index, number_);
    if (status_ == 0) continue;
    killed_ = true;
    ranks_.signal_all(SIGKILL);
    enter(Stage::killing, Clock::duration::zero());
    return failed(fmt::format("rank {} could not be started", job_.first_rank + index));
  }
}

void Attempt::watch() {
  std::vector<pollfd> fds{
      {guardian_.launcher, POLLIN, 0}, {guardian_.signals, POLLIN, 0}, {guardian_.reports.fd(), POLLIN, 0}};
  const std::size_t own = fds.size();
  int timeout_ms = -1;
  if (deadline_ != Clock::time_point::max()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now());
    timeout_ms = std::max(0, static_cast<int>(left.count()));
  }
  output_.await(fds, timeout_ms);
  const std::size_t before_nodes = fds.size();
  guardian_.nodes.await(fds, timeout_ms);
  poll(fds.data(), fds.size(), timeout_ms);
  output_.forward(std::span(fds).subspan(own, before_nodes - own));
  guardian_.nodes.serve(std::span(fds).subspan(before_nodes));
  if (fds[0].revents != 0) hear_launcher();
  if (fds[2].revents != 0) take_reports();
  hear_signals();
  reap();
  move_on();
}

void Attempt::hear_launcher() {
  unsigned char message = 0;
  if (read(guardian_.launcher, &message, 1) != 1) {  // the launcher is gone: so is the job
    guardian_.nodes.say({NodeMessage::Kind::stop, number_, 1, "its launcher was killed"});
    end_descendants();
    _exit(1);
  }
  const int signal = message & ~kAlreadyDelivered;
  if ((message & kAlreadyDelivered) == 0) ranks_.signal_all(signal);
  interrupt(signal);
}

void Attempt::hear_nodes() {
  while (stage_ != Stage::over) {
    const auto order = guardian_.nodes.next();
    if (!order) return;
    switch (order->kind) {
      case NodeMessage::Kind::start: start_all(order->attempt); break;
      case NodeMessage::Kind::end: end_ranks(*order); break;
      case NodeMessage::Kind::over: job_is_over(*order); break;
      default: output_.say(order->words);
    }
  }
}

void Attempt::end_ranks(const NodeMessage& order) {
  if (order.attempt != number_) return;
  if (stage_ == Stage::running) {
    output_.say(order.words + "; stopping the ranks");
    status_ = 1;
    stop_within(kGrace);
  }
  if (order.status == 0) return;
  killed_ = true;  // nobody waits for who reads their output
  move_on();
}

// While ranks still run it is because node 0 is out of reach.
void Attempt::job_is_over(const NodeMessage& order) {
  if (!order.words.empty()) output_.say(order.words);
  job_status_ = order.status;
  killed_ = killed_ || order.status != 0;
  if (stage_ == Stage::waiting) enter(Stage::reading, Clock::duration::max());
  stop_within(kGrace);
  move_on();
}

// A terminal's signals reach the guardian itself as well; so does what is sent to the whole group. Those that are sent
// to the launcher alone are passed on by it.
void Attempt::hear_signals() {
  signalfd_siginfo info;
  while (read(guardian_.signals, &info, sizeof info) == sizeof info) {
    if (info.ssi_signo != SIGCHLD) interrupt(static_cast<int>(info.ssi_signo));
  }
}

void Attempt::interrupt(int signal) {
  if (!interrupted_) output_.say(fmt::format("{}: stopping the ranks", strsignal(signal)));
  interrupted_ = true;
  status_ = 1;
  stop_within(kGrace);
  guardian_.nodes.say({NodeMessage::Kind::stop, number_, 1, strsignal(signal)});
}

// The others are left alone: a rank that reports is one that leaves, and they hear of it as ever.
void Attempt::take_reports() {
  for (const RankReports::Report& report : guardian_.reports.take()) {
    if (!reported_) {
      output_.say(
          fmt::format("rank {} ended badly, which its exit status may not show: {}", report.rank, report.words));
    }
    reported_ = true;
  }
}

void Attempt::reap() {
  for (auto ended = ranks_.take_ended(); !ended.empty(); ended = ranks_.take_ended()) {
    // A signal to the group comes to the guardian before a rank that it ends can be waited for: the system sends it to
    // all before one of them may end. So it is here by now, and such an end is no failure of the rank. With it the
    // guardian may hear that more ranks have ended: these are taken next, as it will not hear of them again.
    hear_signals();
    for (const auto& [rank, how] : ended) judge(rank, how);
  }
}

void Attempt::judge(int rank, int status) {
  const bool has_failed = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  if (!has_failed || stage_ != Stage::running) return;  // only the first failure is news
  const std::string how = fmt::format("rank {} {}", job_.first_rank + rank, how_it_ended(status));
  if (job_.keep_going) return output_.say(how + (ranks_.alive() > 0 ? "; the others go on" : ""));
  output_.say(how + (ranks_.alive() > 0 || has_other_nodes(job_) ? "; stopping the others" : ""));
  status_ = job_.pass_on_status_2 && WIFEXITED(status) && WEXITSTATUS(status) == 2 ? 2 : 1;
  stop_within(kGrace);
  failed(how);
}

void Attempt::failed(const std::string& how) {
  guardian_.nodes.say({NodeMessage::Kind::failed, number_, status_, how});
}

void Attempt::stop_within(Clock::duration grace) {
  if (stage_ == Stage::running) enter(Stage::grace, grace);
}

void Attempt::enter(Stage stage, Clock::duration time) {
  stage_ = stage;
  deadline_ = time == Clock::duration::max() ? Clock::time_point::max() : Clock::now() + time;
}

void Attempt::move_on() {
  if (stage_ == Stage::waiting) return;
  if (stage_ < Stage::lingering) {
    if (ranks_.alive() > 0)
      press_ranks();
    else
      enter(Stage::lingering, stage_ == Stage::killing ? Clock::duration::zero() : kStragglers);
  }
  if (stage_ == Stage::lingering && Clock::now() >= deadline_) {
    give_up_ = Clock::now() + kClearing;
    enter(Stage::clearing, Clock::duration::zero());
  }
  if (stage_ == Stage::clearing) clear_children();
  if ((!ranks_.has_children() || abandoned_) && stage_ < Stage::reading) enter(Stage::reading, Clock::duration::max());
  if (stage_ == Stage::reading) await_reader();
}

void Attempt::press_ranks() {
  if (Clock::now() < deadline_) return;
  killed_ = true;
  if (stage_ == Stage::grace) {
    ranks_.signal_all(SIGTERM);
    enter(Stage::terminating, kTermGrace);
  } else {
    ranks_.signal_all(SIGKILL);
    enter(Stage::killing, Clock::duration::max());
  }
}

// By their end, children of theirs come to be the guardian's.
void Attempt::clear_children() {
  kill_children();
  deadline_ = Clock::now() + 20ms;
  if (Clock::now() < give_up_) return;
  killed_ = true;
  abandoned_ = true;
}

// Ranks that ended by themselves have said what somebody may want to read, however late. When they were killed, the
// command is to end.
void Attempt::await_reader() {
  if (output_.has_all_written()) return enter(Stage::over, Clock::duration::max());
  if (!interrupted_ && !killed_) return;
  const bool goes_on = output_.written() != read_ || deadline_ == Clock::time_point::max();
  if (!goes_on && Clock::now() < deadline_) return;
  if (!goes_on) output_.drop();
  if (output_.has_all_written()) return enter(Stage::over, Clock::duration::max());
  read_ = output_.written();
  enter(Stage::reading, kReaderGrace);  // after drop(): for what that has said
}

}  // namespace tutti::internal::tools
