#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>

#include "control/control_ranks.h"
#include "control/message.h"
#include "net/handshake.h"

namespace tutti::internal {
namespace {

using namespace testing_ranks;

std::string receive(int fd, std::size_t bytes) {
  std::string text;
  while (text.size() < bytes) {
    pollfd entry{fd, POLLIN, 0};
    if (poll(&entry, 1, 10'000) <= 0) break;
    char piece[64];
    const ssize_t got = recv(fd, piece, std::min(sizeof piece, bytes - text.size()), 0);
    if (got <= 0) break;
    text.append(piece, static_cast<std::size_t>(got));
  }
  return text;
}

struct Job {
  explicit Job(const std::vector<Settings>& settings) : ranks(join_all(settings)) {
    for (Outcome& rank : ranks) inboxes.push_back(std::make_unique<Inbox>(*rank.control));
  }
  ~Job() { leave_all(ranks); }
  Control& operator[](int rank) { return *ranks[static_cast<std::size_t>(rank)].control; }
  Inbox& inbox(int rank) { return *inboxes[static_cast<std::size_t>(rank)]; }
  std::vector<Outcome> ranks;
  std::vector<std::unique_ptr<Inbox>> inboxes;
};

TEST(ControlData, EveryPairConnectsOnBothPaths) {
  for (const std::string secret : {"", "s3cret"}) {
    Job job(testing_ranks::job(4, secret));
    for (const Path path : {Path::local, Path::tcp}) {
      const std::uint64_t communicator = path == Path::local ? 1 : 2;
      for (int high = 0; high < 4; ++high)
        for (int low = 0; low < high; ++low) job[high].connect(low, path, communicator);
      for (int high = 0; high < 4; ++high)
        for (int low = 0; low < high; ++low) {
          auto up = job.inbox(high).connection(low, communicator);
          auto down = job.inbox(low).connection(high, communicator);
          ASSERT_TRUE(up && up->socket && down && down->socket) << high << low << (up ? up->error : "");
          EXPECT_EQ(up->path, path);
          EXPECT_EQ(down->path, path);
          for (const int fd : {up->socket.fd(), down->socket.fd()}) {
            EXPECT_TRUE(fcntl(fd, F_GETFL) & O_NONBLOCK);
            EXPECT_TRUE(fcntl(fd, F_GETFD) & FD_CLOEXEC);
          }
          ASSERT_EQ(send(up->socket.fd(), "up", 2, MSG_NOSIGNAL), 2);
          ASSERT_EQ(send(down->socket.fd(), "down", 4, MSG_NOSIGNAL), 4);
          EXPECT_EQ(receive(down->socket.fd(), 2), "up");
          EXPECT_EQ(receive(up->socket.fd(), 4), "down");
        }
    }
  }
}

TEST(ControlData, ManyConnectionsAtOnceKeepTheirCommunicatorsApart) {
  Job job(testing_ranks::job(3, "s3cret"));
  for (std::uint64_t c = 100; c < 150; ++c)
    for (const int low : {0, 1}) job[2].connect(low, c % 2 ? Path::tcp : Path::local, c);
  for (std::uint64_t c = 100; c < 150; ++c)
    for (const int low : {0, 1}) {
      auto up = job.inbox(2).connection(low, c);
      auto down = job.inbox(low).connection(2, c);
      ASSERT_TRUE(up && down && up->socket && down->socket);
      const std::string text = std::to_string(c);
      ASSERT_GT(send(up->socket.fd(), text.data(), text.size(), MSG_NOSIGNAL), 0);
      EXPECT_EQ(receive(down->socket.fd(), text.size()), text);
    }
}

TEST(ControlData, AConnectionThatComesBeforeItsHandlerIsKept) {
  auto ranks = join_all(job(2));
  Inbox upper(*ranks[1].control);
  ranks[1].control->connect(0, Path::local, 7);
  ASSERT_TRUE(upper.connection(0, 7));
  std::this_thread::sleep_for(milliseconds(50));
  Inbox lower(*ranks[0].control);
  EXPECT_TRUE(lower.connection(1, 7));
  leave_all(ranks);
}

// On a machine that is swamped by its ranks, say. The handler keeps rank 0's control thread from answering.
TEST(ControlData, APeerThatIsSlowToAnswerIsWaitedFor) {
  auto settings = testing_ranks::job(3, "s3cret");
  for (Settings& s : settings) s.connect_timeout = milliseconds(1000);
  auto ranks = join_all(settings);
  Inbox slow(*ranks[0].control), one(*ranks[1].control), two(*ranks[2].control);
  std::atomic<bool> is_busy{false};
  ranks[0].control->on_notice([&](const Notice&) {
    is_busy = true;
    std::this_thread::sleep_for(milliseconds(1500));
  });
  ranks[2].control->poison(1, ErrorCode::system, -1, "");
  while (!is_busy) std::this_thread::sleep_for(milliseconds(1));
  ranks[1].control->connect(0, Path::tcp, 5);
  const auto connection = one.connection(0, 5);
  ASSERT_TRUE(connection);
  EXPECT_EQ(connection->error, "");
  EXPECT_TRUE(slow.connection(1, 5));
  leave_all(ranks);
}

TEST(ControlData, WhatCannotBeConnectedIsAnErrorThatNamesThePeer) {
  auto settings = testing_ranks::job(3);
  for (Settings& s : settings) s.transport = "shm";
  Job job(settings);
  job[1].connect(2, Path::local, 1);
  EXPECT_NE(job.inbox(1).connection(2, 1)->error.find("only lower ranks"), std::string::npos);
  job[2].connect(1, Path::tcp, 2);
  EXPECT_NE(job.inbox(2).connection(1, 2)->error.find("rank 2: rank 1 cannot be reached (it listens on no network"),
            std::string::npos);
  job.ranks[1].control.reset();
  ASSERT_TRUE(job.inbox(2).notice(Notice::Kind::left, 1));
  job[2].connect(1, Path::local, 3);
  EXPECT_NE(job.inbox(2).connection(1, 3)->error.find("it has died or left"), std::string::npos);
}

// Rank 0 of a job of two, by hand.
class HandMadeHub {
 public:
  explicit HandMadeHub(const Settings& settings)
      : settings_(settings), listener_(listen_at(loopback().with_port(settings.master_port))) {}

  // Lets rank 1 in.
  void join() {
    control_ = next_caller();
    shake(control_);
    const ControlMessage first = next_message();
    Member own = std::get<Introduction>(first).member;
    own.rank = 0;
    const auto table = encode(Table{salt_, {own, std::get<Introduction>(first).member}, ""});
    ASSERT_EQ(send(control_.fd(), table.data(), table.size(), MSG_NOSIGNAL), static_cast<ssize_t>(table.size()));
  }
  Socket next_caller() const {
    wait_for(listener_);
    int error = 0;
    Socket caller = accept_from(listener_.fd(), error);
    if (!caller) throw std::runtime_error("nobody calls");
    return caller;
  }
  void shake(const Socket& caller) const {
    Handshake handshake = Handshake::accepting(
        {0, 2, settings_.secret, std::string(as_key(hmac_sha256(settings_.secret, salt_))), true, true},
        random_digest());
    while (!handshake.done() && !handshake.failed()) {
      wait_for(caller);
      std::byte piece[64];
      const ssize_t got = recv(caller.fd(), piece, std::min(sizeof piece, handshake.wanted()), 0);
      ASSERT_GT(got, 0);
      handshake.feed(std::span(piece).first(static_cast<std::size_t>(got)));
      const auto out = handshake.take_output();
      (void)!send(caller.fd(), out.data(), out.size(), MSG_NOSIGNAL);
    }
    EXPECT_TRUE(handshake.done()) << handshake.reason();
  }

 private:
  static void wait_for(const Socket& socket) {
    pollfd entry{socket.fd(), POLLIN, 0};
    poll(&entry, 1, 10'000);
  }
  ControlMessage next_message() const {
    FrameReader frames(FrameReader::kFromMember);
    while (true) {
      wait_for(control_);
      std::byte piece[1024];
      const ssize_t got = recv(control_.fd(), piece, sizeof piece, 0);
      if (got <= 0) throw std::runtime_error("rank 1 is gone");
      frames.feed(std::span(piece).first(static_cast<std::size_t>(got)));
      if (auto message = frames.next()) return *message;
    }
  }

  const Settings settings_;
  const Socket listener_;
  const Digest salt_ = random_digest();
  Socket control_;
};

TEST(ControlData, AConnectionThatIsCutBeforeItHasProvenItselfIsTriedAgain) {
  auto settings = testing_ranks::job(2, "s3cret");
  settings[1].heartbeat_timeout = milliseconds(60'000);  // this hub gives no signs of life
  std::optional<HandMadeHub> hub(settings[0]);
  Outcome rank;
  std::thread joins([&] { rank = join(settings[1]); });
  hub->join();
  joins.join();
  ASSERT_TRUE(rank.control) << rank.message();
  Inbox inbox(*rank.control);
  rank.control->connect(0, Path::tcp, 7);
  for (int cut = 0; cut < 3; ++cut) hub->next_caller();
  const Socket caller = hub->next_caller();
  hub->shake(caller);
  const auto connection = inbox.connection(0, 7);
  ASSERT_TRUE(connection);
  EXPECT_EQ(connection->error, "");
  hub.reset();
}

}  // namespace
}  // namespace tutti::internal
