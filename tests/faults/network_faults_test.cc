// The network between the two hosts of a job is cut. Every call ends in time. On each side all ranks tell the same
// story, and one side goes on, never both. More faults than usual, and other ones:
//
//     FAULTS=100 FAULT_SEED=5000 build/release/tests/faults/faults_test --gtest_filter='NetworkFaults.*'
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdio>

#include "brief.h"
#include "faults/fault_job.h"
#include "faults/network_plan.h"
#include "faults/tally.h"
#include "net/network.h"
#include "net/socket.h"

namespace tutti::internal {
namespace {

using namespace std::chrono_literals;
using Clock = FaultJob::Clock;

constexpr auto kAllJoinWithin = 30s, kAllTellWithin = 30s, kAllLeaveWithin = 10s;
// Two silences may follow one another: of a hub, and of the rank that is asked to take its place. A hub that looks late
// lets a silence begin anew.
constexpr auto kCutIsHeardWithin = 2 * (3 * kSilence + 3s);
constexpr auto kCallThrowsWithin = 3s;
// When a cut network is back, TCP may take as long again to notice, and then the calls go on.
constexpr auto kGoesOnWithin = 3 * kSilence / 2;
constexpr auto kLoad = 5s;  // more, where other tests have the processors

struct NetworkTally {
  std::vector<double> of_side[2];  // until all of it know: the majority last
  std::vector<double> thrown, decided;
  std::map<std::string, int> stories[2], courses, goes_on[2];

  void print() const {
    std::printf("courses: %s\n", counts(courses).c_str());
    for (const int side : {1, 0}) {
      const char* const name = side == 1 ? "majority" : "minority";
      std::printf("%s, until all know: %s\n", name, spread(of_side[side]).c_str());
      std::printf("%s heard: %s; then: %s\n", name, counts(stories[side]).c_str(), counts(goes_on[side]).c_str());
    }
    std::printf("from there until all calls have thrown: %s\n", spread(thrown).c_str());
    std::printf("from there until all know whether they go on: %s\n", spread(decided).c_str());
  }
};

class NetworkCourse {
 public:
  // at_most_missed: so long the network may be away, and nobody notices. On a machine that others use too it is away
  // for longer than it was to be.
  NetworkCourse(const NetworkPlan& plan, const TwoHosts& hosts, NetworkTally& tally,
                Clock::duration at_most_missed = 2 * kSilence / 5)
      : plan_(plan), hosts_(hosts), tally_(tally), at_most_missed_(at_most_missed), job_(plan.job, &hosts) {}
  ~NetworkCourse() { hosts_.restore(); }

  void run() {
    const auto is_ready = [](const FaultJob::Rank& rank) { return rank.is_ready; };
    if (!job_.listen(Clock::now() + kAllJoinWithin, [&] { return job_.all(is_ready, [](int) { return true; }); }))
      return blame("not all have joined");
    job_.listen(Clock::now() + plan_.at);
    if (has_any_heard()) return blame("an error before there was a fault");
    cut();
    if (plan_.lasts.count() > 0) {
      job_.listen(cut_ + plan_.lasts);
      hosts_.restore();
      is_short_ = Clock::now() - cut_ <= at_most_missed_;
      if (!plan_.is_long()) job_.listen(Clock::now() + (is_short_ ? 0ms : 3 * kSilence));
    }
    if (!plan_.is_long() && (is_short_ || !has_any_heard()))
      expect_calls_go_on();
    else
      expect_an_end();
    leave();
  }

 private:
  bool is_of(int rank, int host) const {
    return plan_.job.is_of_group(rank) && plan_.job.hosts[static_cast<std::size_t>(rank)] == host && rank != killed_;
  }
  std::function<bool(int)> are_of(int host) const {
    return [this, host](int rank) { return is_of(rank, host); };
  }
  std::function<bool(int)> are_there() const {
    return [this](int rank) { return is_of(rank, 0) || is_of(rank, 1); };
  }
  bool has_any_heard() const {
    return !job_.all([](const FaultJob::Rank& rank) { return !rank.heard && !rank.story; }, are_there());
  }

  void cut() {
    cut_ = Clock::now();
    if (plan_.cut == NetworkCut::down) hosts_.take_down(plan_.host);
    if (plan_.cut != NetworkCut::down) hosts_.silence(plan_.host);
    if (plan_.cut == NetworkCut::lost) hosts_.silence(1 - plan_.host);
  }

  // The network was not missed. Then a rank is killed, and of that all tell.
  void expect_calls_go_on() {
    std::vector<int> calls;
    for (int rank = 0; rank < plan_.job.ranks; ++rank) calls.push_back(job_.rank(rank).calls);
    const auto begin = Clock::now();
    job_.listen(begin + kGoesOnWithin);
    if (has_any_heard()) return blame("a network that was away for a moment is missed");
    const auto has_gone_on = [&](int rank) {
      return !are_there()(rank) || job_.rank(rank).calls > calls[static_cast<std::size_t>(rank)] + 1;
    };
    const auto have_all = [&] {
      bool all = true;
      for (int rank = 0; rank < plan_.job.ranks; ++rank) all = all && has_gone_on(rank);
      return all;
    };
    job_.listen(begin + kGoesOnWithin + kLoad, have_all);
    for (int rank = 0; rank < plan_.job.ranks; ++rank)
      if (!has_gone_on(rank)) return blame("rank " + std::to_string(rank) + " makes no calls any more");
    ++tally_.courses[is_short_ ? "short, nothing happened" : "longer, nothing happened"];
    killed_ = plan_.job.blows.front().rank;
    job_.signal(killed_, SIGKILL);
    const auto is_told = [](const FaultJob::Rank& rank) { return rank.story && rank.heard; };
    if (!job_.listen(Clock::now() + kAllTellWithin, [&] { return job_.all(is_told, are_there()); }))
      return blame("a survivor hangs");
    for (int rank = 0; rank < plan_.job.ranks; ++rank)
      if (are_there()(rank) && (job_.rank(rank).story->code != "peer_lost"))
        return blame("not the story of the rank that was killed");
  }

  void expect_an_end() {
    ++tally_.courses[plan_.lasts.count() == 0 ? "for good" : plan_.is_long() ? "long" : "longer, noticed"];
    const auto is_told = [](const FaultJob::Rank& rank) { return rank.story && rank.heard; };
    if (!job_.listen(Clock::now() + kAllTellWithin, [&] { return job_.all(is_told, are_there()); }))
      return blame("a rank hangs");
    for (const int host : {0, 1}) compare(host);
    const auto is_decided = [](const FaultJob::Rank& rank) { return rank.went_on || rank.refused; };
    if (!job_.listen(Clock::now() + kAllTellWithin, [&] { return job_.all(is_decided, are_there()); }))
      return blame("a rank does not hear whether it goes on");
    tally_.decided.push_back(seconds(Clock::now() - last_heard_));
    for (const int host : {0, 1}) see_who_goes_on(host);
    if (!went_on_[0] && !went_on_[1]) blame("nobody goes on");
    if (went_on_[0] && went_on_[1] && *went_on_[0] != *went_on_[1]) blame("both sides go on");
  }

  // Those that were given up by the others each say so of themselves. Ranks of one host may be of both sides if the
  // network does not come back for all of them at once.
  void compare(int host) {
    const int side = plan_.goes_on_at(host) ? 1 : 0;
    Clock::time_point heard;
    std::map<std::string, const FaultJob::Story*> first_of;  // by code
    for (int number = 0; number < plan_.job.ranks; ++number) {
      if (!is_of(number, host)) continue;
      const auto& rank = job_.rank(number);
      heard = std::max(heard, *rank.heard);
      ++tally_.stories[side][rank.story->code];
      if (rank.story->when - *rank.heard > kCallThrowsWithin) blame("a call throws late");
      tally_.thrown.push_back(seconds(rank.story->when - *rank.heard));
      if (rank.story->code == "expelled") continue;
      const FaultJob::Story* const first = first_of.emplace(rank.story->code, &*rank.story).first->second;
      if (!is_same(*first, *rank.story)) blame("the stories of a side differ");
    }
    last_heard_ = std::max(last_heard_, heard);
    if (!plan_.is_long()) return;
    tally_.of_side[side].push_back(seconds(heard - cut_));
    if (heard - cut_ > kCutIsHeardWithin) blame("heard after " + std::to_string(seconds(heard - cut_)) + " s");
    const std::string expected = side == 1 ? "peer_lost" : "partitioned";
    if (first_of.size() > 1 || (!first_of.contains(expected) && (side == 1 || !first_of.empty())))
      blame("not what that side should hear");
  }

  void see_who_goes_on(int host) {
    const int side = plan_.goes_on_at(host) ? 1 : 0;
    const bool is_sure = plan_.is_long();
    for (int number = 0; number < plan_.job.ranks; ++number) {
      if (!is_of(number, host)) continue;
      const auto& rank = job_.rank(number);
      ++tally_.goes_on[side][rank.went_on ? "went on" : rank.refused->substr(0, rank.refused->find(' '))];
      if (rank.went_on && went_on_[host] && *went_on_[host] != *rank.went_on) blame("a side goes on in two parts");
      if (rank.went_on) went_on_[host] = rank.went_on;
      if (is_sure && side == 1 && rank.went_on != plan_.ranks_at(host)) blame("not all of the majority go on");
      if (is_sure && side == 0 && rank.went_on) blame("a minority goes on");
    }
  }

  void leave() {
    job_.close_input();
    const auto has_ended = [](const FaultJob::Rank& rank) { return rank.status.has_value(); };
    if (!job_.listen(Clock::now() + kAllLeaveWithin, [&] { return job_.all(has_ended, [](int) { return true; }); }))
      return blame("a rank does not end");
    for (int number = 0; number < plan_.job.ranks; ++number) {
      const auto& rank = job_.rank(number);
      if (*rank.status != (number == killed_ ? SIGKILL : 0))
        blame("rank " + std::to_string(number) + " ended with status " + std::to_string(*rank.status));
      if (!rank.wrong.empty()) blame("rank " + std::to_string(number) + ": " + rank.wrong.front());
    }
  }

  void blame(const std::string& what) const {
    std::string all;
    for (int number = 0; number < plan_.job.ranks; ++number) {
      const auto& rank = job_.rank(number);
      all += "\n  rank " + std::to_string(number) + ": ";
      if (rank.heard) all += std::to_string(seconds(*rank.heard - cut_)) + " s, ";
      if (rank.story) all += std::to_string(seconds(rank.story->when - cut_)) + " s: " + rank.story->whole();
      if (rank.went_on) all += "; goes on with " + *rank.went_on;
      if (rank.refused) all += "; does not go on: " + *rank.refused;
      if (rank.status) all += " (ended, status " + std::to_string(*rank.status) + ")";
    }
    ADD_FAILURE() << what << ": " << plan_.text() << all;
  }

  const NetworkPlan& plan_;
  const TwoHosts& hosts_;
  NetworkTally& tally_;
  const Clock::duration at_most_missed_;
  FaultJob job_;
  bool is_short_ = false;
  int killed_ = -1;
  Clock::time_point cut_, last_heard_;
  std::optional<std::string> went_on_[2];
};

TEST(NetworkFaults, EachSideTellsOneStoryAndOneGoesOn) {
  if (!TwoHosts::can_be_made()) GTEST_SKIP() << "no network namespaces";
  const TwoHosts hosts;
  const int faults = number_from("FAULTS", kBrief ? 2 : 6);
  const int first = number_from("FAULT_SEED", 1);
  std::printf("seeds %d to %d\n", first, first + faults - 1);
  NetworkTally tally;
  for (int seed = first; seed < first + faults; ++seed) {
    const NetworkPlan plan = NetworkPlan::draw(static_cast<unsigned>(seed));
    NetworkCourse(plan, hosts, tally).run();
  }
  tally.print();
}

// Each side may be the first to notice.
TEST(NetworkFaults, OneSideGoesOnAlsoIfTheNetworkIsBackWhenThatIsNoticed) {
  if (!TwoHosts::can_be_made()) GTEST_SKIP() << "no network namespaces";
  const TwoHosts hosts;
  const int faults = number_from("FAULTS", kBrief ? 1 : 3);
  const int first = number_from("FAULT_SEED", 1);
  NetworkTally tally;
  for (int seed = first; seed < first + faults; ++seed) {
    NetworkPlan plan = NetworkPlan::draw(static_cast<unsigned>(seed));
    plan.lasts = kSilence * (70 + seed * 13 % 60) / 100;
    if (plan.job.is_without_zero) plan.at = std::max(plan.at, kSilence / 2);
    NetworkCourse(plan, hosts, tally).run();
  }
  tally.print();
}

// The next hub is called meanwhile.
TEST(NetworkFaults, AMomentWhileTheHubLeavesIsNotMissed) {
  if (!TwoHosts::can_be_made()) GTEST_SKIP() << "no network namespaces";
  const TwoHosts hosts;
  NetworkTally tally;
  constexpr std::chrono::milliseconds kPatience{
      3000};  // so that a machine that others use too does not make a moment longer
  for (unsigned seed = 1; seed <= (kBrief ? 1 : 2); ++seed) {
    NetworkPlan plan = NetworkPlan::draw(seed);
    plan.job.silence = kPatience;
    plan.job.ranks = 4;
    plan.job.hosts = seed % 2 == 0 ? std::vector{0, 0, 1, 1} : std::vector{0, 1, 0, 1};
    plan.job.is_without_zero = true;
    plan.job.then.assign(4, "shrink");
    plan.job.blows.front().rank = 2;
    plan.cut = seed % 2 == 0 ? NetworkCut::lost : NetworkCut::down;
    plan.at = std::chrono::milliseconds(20 * seed);
    plan.lasts = 3 * kPatience / 10;
    NetworkCourse(plan, hosts, tally, 2 * kPatience / 5).run();
  }
  tally.print();
}

// TCP sends again what was lost, each time after twice as long, but at least every second.
TEST(NetworkFaults, AllButASecondOfTheHeartbeatTimeoutIsNotMissed) {
  if (!TwoHosts::can_be_made()) GTEST_SKIP() << "no network namespaces";
  const Socket socket = listen_in(loopback(), 0, 0);
  constexpr int kTcpRtoMaxMs = 44, kSecond = 1000;
  if (::setsockopt(socket.fd(), IPPROTO_TCP, kTcpRtoMaxMs, &kSecond, sizeof kSecond) != 0)
    GTEST_SKIP() << "the kernel is older than Linux 6.15";
  const TwoHosts hosts;
  NetworkTally tally;
  NetworkPlan plan = NetworkPlan::draw(1);
  plan.job.silence = 5s;
  plan.job.ranks = 4;
  plan.job.hosts = {0, 0, 1, 1};
  plan.job.is_without_zero = false;
  plan.job.then.assign(4, "stay");
  plan.job.blows.front().rank = 3;
  plan.cut = NetworkCut::lost;
  plan.lasts = 3600ms;
  // On a machine that others use too the network may be away for longer than it was to be.
  for (int attempt = 0; attempt < 5 && tally.courses["short, nothing happened"] == 0; ++attempt)
    NetworkCourse(plan, hosts, tally, 3900ms).run();
  EXPECT_EQ(tally.courses["short, nothing happened"], 1) << "the network was away for too long each time";
}

}  // namespace
}  // namespace tutti::internal
