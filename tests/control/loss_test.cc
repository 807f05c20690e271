// Ranks as processes of their own, so that they can die.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <string_view>

#include "control/control_ranks.h"

namespace tutti::internal {
namespace {

using namespace testing_ranks;
using Clock = std::chrono::steady_clock;
using Kind = Notice::Kind;

// One process a rank. Each joins, says so, and then does what its body says; its exit status tells how it went.
class Processes {
 public:
  using Body = std::function<bool(Control&, Inbox&)>;

  Processes(const std::vector<Settings>& settings, const Body& body) {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    for (const Settings& s : settings) {
      const pid_t pid = fork();
      if (pid == 0) _exit(run(s, body, ready[1]));
      pids_.push_back(pid);
    }
    close(ready[1]);
    char byte = 0;
    for (std::size_t i = 0; i < settings.size(); ++i) EXPECT_EQ(read(ready[0], &byte, 1), 1) << "a rank did not join";
    close(ready[0]);
  }
  ~Processes() {
    for (std::size_t i = 0; i < pids_.size(); ++i)
      if (pids_[i] > 0) {
        send(static_cast<int>(i), SIGKILL);
        status(static_cast<int>(i));
      }
  }

  void send(int rank, int signal) { kill(pids_[static_cast<std::size_t>(rank)], signal); }

  // Waits for its end: the exit status, or -signal.
  int status(int rank) {
    int status = 0;
    waitpid(std::exchange(pids_[static_cast<std::size_t>(rank)], -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  static int run(const Settings& settings, const Body& body, int ready) {
    try {
      const auto control = join_job(settings, nullptr, {});
      Inbox inbox(*control);
      if (write(ready, "x", 1) != 1) return 3;
      close(ready);
      return body(*control, inbox) ? 0 : 1;
    } catch (const std::exception& failure) {
      std::fprintf(stderr, "rank %d: %s\n", settings.rank, failure.what());
      return 2;
    }
  }
  std::vector<pid_t> pids_;
};

TEST(ControlLoss, EveryoneHearsOfAKilledRankBeforeItsSilenceTells) {
  for (const std::string secret : {"", "s3cret"})
    for (const int victim : {0, 2, 3}) {
      auto settings = job(4, secret);
      for (Settings& s : settings) s.heartbeat_timeout = milliseconds(60'000);
      Processes ranks(settings, [&](Control& control, Inbox& inbox) {
        if (control.rank() == victim) pause();
        const auto notice = inbox.notice(Kind::lost, victim, milliseconds(30'000));
        return notice && notice->code == ErrorCode::peer_lost && inbox.count(Kind::lost) == 1;
      });
      ranks.send(victim, SIGKILL);
      const auto start = Clock::now();
      for (int rank = 0; rank < 4; ++rank) {
        if (rank == victim) continue;
        EXPECT_EQ(ranks.status(rank), 0) << rank << " of the death of " << victim;
      }
      EXPECT_LT(Clock::now() - start, milliseconds(20'000));
      EXPECT_EQ(ranks.status(victim), -SIGKILL);
    }
}

// Three jobs at the same time, as each takes longer than the heartbeat timeout.
TEST(ControlLoss, ARankOrAHubThatFallsSilentIsLostAndQuietRanksAreNot) {
  const auto patient_job = [] {
    auto settings = job(3, "s3cret");
    for (Settings& s : settings) s.heartbeat_timeout = milliseconds(4000);
    return settings;
  };
  Processes with_silent_rank(patient_job(), [](Control& control, Inbox& inbox) {
    if (control.rank() == 2) pause();
    const auto notice = inbox.notice(Kind::lost, 2, milliseconds(30'000));
    return notice && notice->message.find("no word from it for 4 s") != std::string::npos;
  });
  Processes with_silent_hub(patient_job(), [](Control& control, Inbox& inbox) {
    if (control.rank() == 0) pause();
    return inbox.notice(Kind::lost, 0, milliseconds(30'000)).has_value();
  });
  Processes quiet(patient_job(), [](Control&, Inbox& inbox) {
    std::this_thread::sleep_for(milliseconds(6000));
    return inbox.count(Kind::lost) == 0;
  });
  with_silent_rank.send(2, SIGSTOP);
  with_silent_hub.send(0, SIGSTOP);
  for (const int rank : {1, 0}) EXPECT_EQ(with_silent_rank.status(rank), 0) << rank;
  for (const int rank : {1, 2}) EXPECT_EQ(with_silent_hub.status(rank), 0) << rank;
  for (const int rank : {2, 1, 0}) EXPECT_EQ(quiet.status(rank), 0) << rank;
}

TEST(ControlLoss, ARankThatDiesWhileJoiningIsNamed) {
  auto settings = job(3, "s3cret");
  const pid_t early = fork();
  if (early == 0) {
    join(settings[1]);
    _exit(0);
  }
  // Rank 0 says now and then for whom it waits: at last for rank 2 alone.
  std::atomic<bool> is_admitted{false};
  settings[0].connect_timeout = milliseconds(1000);  // after which it says so first
  settings[0].log_sink = [&](const LogLine& line) {
    if (line.text.find(" for rank 2 since ") != std::string_view::npos) is_admitted = true;
  };
  std::vector<Outcome> ranks(1);
  std::thread hub([&] { ranks[0] = join(settings[0]); });
  const auto limit = Clock::now() + milliseconds(20'000);
  while (!is_admitted && Clock::now() < limit) std::this_thread::sleep_for(milliseconds(5));
  EXPECT_TRUE(is_admitted) << "rank 1 was not admitted";
  kill(early, SIGKILL);
  waitpid(early, nullptr, 0);
  hub.join();
  EXPECT_TRUE(ranks[0].says("rank 1 was lost while joining")) << ranks[0].message();
}

TEST(ControlLeave, AGoodbyeIsToldAsSuch) {
  auto ranks = join_all(job(3));
  Inbox first(*ranks[0].control), third(*ranks[2].control);
  ranks[1].control.reset();
  EXPECT_TRUE(first.notice(Kind::left, 1));
  EXPECT_TRUE(third.notice(Kind::left, 1));
  EXPECT_EQ(first.count(Kind::left) + third.count(Kind::left), 2u);
  EXPECT_EQ(first.count(Kind::lost) + third.count(Kind::lost), 0u);
  leave_all(ranks);
}

// How long rank 0 takes to leave. The others stay; their control threads hear of it.
Clock::duration time_of_a_hub_to_leave(const std::string& secret) {
  auto ranks = join_all(job(3, secret));
  Inbox second(*ranks[1].control), third(*ranks[2].control);
  const auto start = Clock::now();
  ranks[0].control.reset();
  const auto took = Clock::now() - start;
  EXPECT_TRUE(second.notice(Kind::left, 0));
  EXPECT_TRUE(third.notice(Kind::left, 0));
  EXPECT_FALSE(second.notice(Kind::lost, 0, milliseconds(100)));
  leave_all(ranks);
  return took;
}

// If it did, it would take a second each time. One of several jobs shows that it does not: the machine may be busy.
TEST(ControlLeave, TheHubDoesNotWaitForTheOtherRanks) {
  for (const std::string secret : {"", "s3cret"}) {
    Clock::duration least = time_of_a_hub_to_leave(secret);
    for (int tries = 1; tries < 5 && least >= milliseconds(900); ++tries)
      least = std::min(least, time_of_a_hub_to_leave(secret));
    EXPECT_LT(least, milliseconds(900));
  }
}

// Of each rank in that order: how often it has heard that another differs, and that all agree. It leaves right behind
// its farewell.
std::vector<std::pair<std::size_t, std::size_t>> heard_by_leavers(const std::string& secret,
                                                                  const std::vector<std::size_t>& order) {
  auto ranks = join_all(job(3, secret));
  std::vector<std::pair<std::size_t, std::size_t>> heard;
  for (const std::size_t rank : order) {
    Inbox inbox(*ranks[rank].control);
    ranks[rank].control->farewell({.communicator = 9, .ranks = 3, .account = {5, rank == 1 ? 51u : 50u, Tag{{5, 5}}}});
    ranks[rank].control->leave();
    heard.emplace_back(inbox.count(Kind::differed), inbox.count(Kind::agreed));
  }
  return heard;
}

// In whatever order they leave, the later one of two that differ hears of it; also from a hub that has left. leave()
// waits for a second only, in which the others may get no processor: so they may try again.
TEST(ControlLeave, WhoLeavesAfterARankThatCalledSomethingElseHearsOfIt) {
  for (const std::string secret : {"", "s3cret"})
    for (const std::vector<std::size_t>& order : {std::vector<std::size_t>{0, 1, 2}, {2, 1, 0}, {1, 0, 2}}) {
      std::vector<std::pair<std::size_t, std::size_t>> heard, expected;
      for (const std::size_t rank : order) {
        const bool differs = rank != order[0] && (rank == 1 || order[0] == 1);
        expected.emplace_back(differs ? 1 : 0, differs ? 0 : 1);
      }
      for (int tries = 0; tries < 3 && heard != expected; ++tries) heard = heard_by_leavers(secret, order);
      EXPECT_EQ(heard, expected) << "order " << order[0] << order[1] << order[2];
    }
}

TEST(ControlNotice, PoisonReachesEveryRank) {
  for (const int source : {0, 1}) {
    auto ranks = join_all(job(3));
    std::vector<std::unique_ptr<Inbox>> inboxes;
    for (Outcome& rank : ranks) inboxes.push_back(std::make_unique<Inbox>(*rank.control));
    ranks[static_cast<std::size_t>(source)].control->poison(42, ErrorCode::mismatch, 2, "they differ");
    for (int rank = 0; rank < 3; ++rank) {
      const auto notice = inboxes[static_cast<std::size_t>(rank)]->notice(Kind::poisoned, source);
      ASSERT_TRUE(notice) << rank;
      EXPECT_EQ(notice->communicator, 42u);
      EXPECT_EQ(notice->code, ErrorCode::mismatch);
      EXPECT_EQ(notice->about, 2);
      EXPECT_EQ(notice->message, "they differ");
    }
    leave_all(ranks);
  }
}

TEST(ControlNotice, AProbeIsAnsweredFromTheHistoryOfThePeer) {
  auto ranks = join_all(job(3));
  std::vector<std::unique_ptr<Inbox>> inboxes;
  for (Outcome& rank : ranks) inboxes.push_back(std::make_unique<Inbox>(*rank.control));
  const auto history = std::make_shared<CallHistory>();
  history->begins(5, Tag{{50, 51}});
  history->entered(5);
  for (Outcome& rank : ranks) rank.control->publish(9, history);
  for (const std::size_t asked : {0, 1, 2})
    for (const std::size_t asking : {0, 1, 2}) {
      ranks[asking].control->probe(static_cast<int>(asked), 9, 9, 5);
      const auto notice = inboxes[asking]->notice(Kind::answer, static_cast<int>(asked));
      ASSERT_TRUE(notice);
      EXPECT_TRUE(notice->entered);
      EXPECT_EQ(notice->communicator, 9u);
      EXPECT_EQ(notice->sequence, 5u);
      EXPECT_EQ(notice->call, (Tag{{5ull << 32 | 50, 51}}));
    }
  leave_all(ranks);
}

TEST(ControlNotice, ANoticeThatComesBeforeItsHandlerIsKept) {
  auto ranks = join_all(job(2));
  ranks[0].control->poison(1, ErrorCode::aborted, 0, "early");
  std::this_thread::sleep_for(milliseconds(50));
  Inbox inbox(*ranks[1].control);
  EXPECT_TRUE(inbox.notice(Kind::poisoned, 0));
  leave_all(ranks);
}

}  // namespace
}  // namespace tutti::internal
