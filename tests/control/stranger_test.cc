// Whoever speaks something else at a port of ours, or nothing at all, is dropped and holds nobody up.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>

#include "control/control_ranks.h"
#include "net/handshake.h"

namespace tutti::internal {
namespace {

using namespace testing_ranks;
using Clock = std::chrono::steady_clock;

Socket call_from(const std::string& own_address, const Endpoint& place, int& error) {
  if (own_address.empty()) return start_connecting(place, error);
  Socket socket(::socket(place.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const Endpoint own = *Endpoint::parse(own_address, 0);
  EXPECT_EQ(bind(socket.fd(), own.data(), own.bytes()), 0);
  error = connect(socket.fd(), place.data(), place.bytes()) == 0 ? 0 : errno;
  return socket;
}

Socket call(const Endpoint& place, const std::string& own_address = "") {
  for (int attempt = 0; attempt < 2000; ++attempt) {
    int error = 0;
    Socket socket = call_from(own_address, place, error);
    pollfd entry{socket.fd(), POLLOUT, 0};
    if (error == EINPROGRESS && poll(&entry, 1, 5000) > 0) error = error_of(socket.fd());
    if (error == 0) return socket;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return {};
}

void say(const Socket& socket, const std::string& text) {
  (void)!send(socket.fd(), text.data(), text.size(), MSG_NOSIGNAL);
}

// Whether the other end hangs up within `limit`.
bool is_hung_up(const Socket& socket, milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  do {
    pollfd entry{socket.fd(), POLLIN, 0};
    poll(&entry, 1, 10);
    char piece[256];
    const ssize_t got = recv(socket.fd(), piece, sizeof piece, 0);
    if (got == 0 || (got < 0 && errno != EAGAIN)) return true;
  } while (Clock::now() < deadline);
  return false;
}

// Whether the other end hangs up on so many of them.
bool reach_hung_up(std::vector<Socket>& callers, std::size_t count) {
  const auto deadline = Clock::now() + milliseconds(10'000);
  std::size_t gone = 0;
  while (gone < count && Clock::now() < deadline) {
    std::this_thread::sleep_for(milliseconds(2));
    gone += std::erase_if(callers, [](const Socket& caller) {
      char piece[256];
      const ssize_t got = recv(caller.fd(), piece, sizeof piece, 0);
      return got == 0 || (got < 0 && errno != EAGAIN);
    });
  }
  return gone >= count;
}

std::vector<std::string> hostile_words() {
  std::vector<std::string> words{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", std::string("\x16\x03\x01\x02\x00", 5), "\n",
                                 std::string(100'000, 'A')};
  std::mt19937 random(5);
  for (int i = 0; i < 20; ++i) {
    std::string noise(16 + random() % 200, ' ');
    for (char& c : noise) c = static_cast<char>(random());
    words.push_back(noise);
    // The same behind a hello that is well formed, from someone without the secret.
    const auto hello = Handshake::connecting({Handshake::Purpose::control, 1, 0, 0}, "", random_digest()).take_output();
    words.push_back(std::string(reinterpret_cast<const char*>(hello.data()), hello.size()) + noise + noise);
  }
  return words;
}

TEST(ControlStranger, NobodyIsHeldUpWhileJoining) {
  auto settings = job(3, "s3cret");
  for (Settings& s : settings) s.connect_timeout = milliseconds(30'000);  // so long a caller could hold a rank up
  std::vector<Outcome> ranks(3);
  std::thread zero([&] { ranks[0] = join(settings[0]); });
  const Endpoint place = loopback().with_port(settings[0].master_port);
  std::vector<Socket> callers;
  for (const std::string& words : hostile_words()) {
    callers.push_back(call(place));
    ASSERT_TRUE(callers.back());
    say(callers.back(), words);
  }
  for (int silent = 0; silent < 200; ++silent) callers.push_back(call(place));
  const auto start = Clock::now();
  auto others = join_all({settings[1], settings[2]});
  zero.join();
  EXPECT_LT(Clock::now() - start, milliseconds(20'000));
  ranks[1] = std::move(others[0]);
  ranks[2] = std::move(others[1]);
  for (const Outcome& rank : ranks) EXPECT_TRUE(rank.control) << rank.message();
  leave_all(ranks);
}

TEST(ControlStranger, AreDroppedAtOnceAndTheJobGoesOn) {
  auto settings = job(3, "s3cret");
  for (Settings& s : settings) s.connect_timeout = milliseconds(30'000);  // the deadline that drops the silent ones
  auto ranks = join_all(settings);
  Inbox upper(*ranks[2].control), lower(*ranks[1].control);
  for (int rank = 0; rank < 3; ++rank) {
    const Member& member = ranks[0].control->members()[static_cast<std::size_t>(rank)];
    for (const Endpoint& place : {*Endpoint::parse(member.address, member.port), Endpoint::local(member.local_name)})
      for (const std::string& words : hostile_words()) {
        const Socket caller = call(place);
        say(caller, words);
        EXPECT_TRUE(is_hung_up(caller, milliseconds(10'000))) << words.substr(0, 20);
      }
  }
  ranks[2].control->connect(1, Path::tcp, 1);
  EXPECT_TRUE(upper.connection(1, 1) && lower.connection(2, 1));
  EXPECT_EQ(upper.count(Notice::Kind::lost) + lower.count(Notice::Kind::lost), 0u);
  leave_all(ranks);
}

void send_output(const Socket& caller, Handshake& handshake) {
  const auto out = handshake.take_output();
  (void)!send(caller.fd(), out.data(), out.size(), MSG_NOSIGNAL);
}

// What the listener answers in the end.
Handshake::Failure shake_hands(const Socket& caller, Handshake& handshake) {
  while (!handshake.failed() && handshake.wanted() > 0) {
    send_output(caller, handshake);
    std::byte piece[64];
    pollfd entry{caller.fd(), POLLIN, 0};
    if (poll(&entry, 1, 5000) <= 0) break;
    const ssize_t got = recv(caller.fd(), piece, std::min(sizeof piece, handshake.wanted()), 0);
    if (got <= 0) break;
    handshake.feed(std::span(piece).first(static_cast<std::size_t>(got)));
  }
  return handshake.failure();
}

// To someone who shakes hands with this key.
Handshake::Failure failure_with(const Endpoint& place, const Handshake::Opening& opening, const std::string& key) {
  const Socket caller = call(place);
  Handshake handshake = Handshake::connecting(opening, key, random_digest());
  return shake_hands(caller, handshake);
}

// A rank is in the middle of its handshake, and then many call: nothing at all, or half a handshake from another
// address.
TEST(ControlStranger, ManyWhoCallDropNobodyWhoIsShakingHands) {
  for (const bool silent : {true, false}) {
    auto settings = job(2, "s3cret");
    for (Settings& s : settings) s.connect_timeout = milliseconds(30'000);
    auto ranks = join_all(settings);
    const Member& member = ranks[0].control->members()[0];
    const Endpoint place = *Endpoint::parse(member.address, member.port);
    const Handshake::Opening opening{Handshake::Purpose::control, 1, 0, 0};
    const Socket rank = call(place);
    Handshake handshake = Handshake::connecting(opening, "s3cret", random_digest());
    send_output(rank, handshake);
    pollfd challenge{rank.fd(), POLLIN, 0};
    ASSERT_EQ(poll(&challenge, 1, 5000), 1);
    std::vector<Socket> callers;
    for (int i = 0; i < 200; ++i) {
      callers.push_back(silent ? call(place) : call(place, "127.0.0.2"));
      ASSERT_TRUE(callers.back());
      Handshake half = Handshake::connecting(opening, "", random_digest());
      if (!silent) send_output(callers.back(), half);
    }
    EXPECT_TRUE(reach_hung_up(callers, 100)) << "there is not room for that many";
    EXPECT_EQ(shake_hands(rank, handshake), Handshake::Failure::none);
    EXPECT_TRUE(handshake.done());
    leave_all(ranks);
  }
}

TEST(ControlStranger, WhoHoldsTheSecretAndSaysNothingIsDroppedByTheDeadline) {
  auto settings = job(2, "s3cret");
  for (Settings& s : settings) s.connect_timeout = milliseconds(100);
  auto ranks = join_all(settings);
  const Member& member = ranks[0].control->members()[0];
  const Socket caller = call(*Endpoint::parse(member.address, member.port));
  Handshake handshake = Handshake::connecting({Handshake::Purpose::control, 1, 0, 0}, "s3cret", random_digest());
  ASSERT_EQ(shake_hands(caller, handshake), Handshake::Failure::none);
  EXPECT_TRUE(is_hung_up(caller, milliseconds(10'000)));
  leave_all(ranks);
}

TEST(ControlStranger, TheSecretAloneOpensNoDataConnectionOfARunningJob) {
  for (const std::string secret : {"", "s3cret"}) {
    auto ranks = join_all(job(2, secret));
    const Member& member = ranks[0].control->members()[0];
    for (const Endpoint& place : {*Endpoint::parse(member.address, member.port), Endpoint::local(member.local_name)}) {
      EXPECT_EQ(failure_with(place, {Handshake::Purpose::data, 1, 0, 7}, secret), Handshake::Failure::wrong_secret);
      // Where no secret is set, the network opens no control connection either.
      if (secret.empty() || place.is_local()) {
        EXPECT_NE(failure_with(place, {Handshake::Purpose::control, 1, 0, 0}, secret), Handshake::Failure::none);
      }
    }
    leave_all(ranks);
  }
}

TEST(ControlStranger, AnotherUsersProcessIsTurnedAwayAtALocalSocket) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const auto settings = job(2);
  const Endpoint place = Endpoint::local("tutti-0-" + std::to_string(settings[0].master_port));
  std::vector<Outcome> ranks(2);
  std::thread zero([&] { ranks[0] = join(settings[0]); });
  const pid_t other = fork();
  if (other == 0) {
    if (setresuid(65534, 65534, 65534) != 0) _exit(2);
    const Socket caller = call(place);
    const auto hello = Handshake::connecting({Handshake::Purpose::control, 1, 0, 0}, "", Digest{}).take_output();
    (void)!send(caller.fd(), hello.data(), hello.size(), MSG_NOSIGNAL);
    char byte = 0;
    pollfd entry{caller.fd(), POLLIN, 0};
    poll(&entry, 1, 10'000);
    _exit(recv(caller.fd(), &byte, 1, 0) <= 0 && errno != EAGAIN ? 0 : 1);  // hung up without a word
  }
  int status = 0;
  waitpid(other, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  ranks[1] = join(settings[1]);
  zero.join();
  EXPECT_TRUE(ranks[0].control && ranks[1].control) << ranks[0].message() << ranks[1].message();
  leave_all(ranks);
}

TEST(ControlStranger, TheSilentAreDroppedByTheDeadline) {
  auto settings = job(2, "s3cret");
  for (Settings& s : settings) s.connect_timeout = milliseconds(300);
  auto ranks = join_all(settings);
  const Member& member = ranks[0].control->members()[1];
  const auto start = Clock::now();
  const Socket caller = call(*Endpoint::parse(member.address, member.port));
  EXPECT_TRUE(is_hung_up(caller, milliseconds(10'000)));
  EXPECT_GE(Clock::now() - start, milliseconds(300));
  leave_all(ranks);
}

TEST(ControlStranger, AreReportedAtMostOnceASecond) {
  auto ranks = join_all(job(2, "s3cret"));
  const Member& member = ranks[0].control->members()[1];
  testing::internal::CaptureStderr();
  const auto start = Clock::now();
  for (int i = 0; i < 100; ++i) {
    const Socket caller = call(*Endpoint::parse(member.address, member.port));
    say(caller, "GET / HTTP/1.1\r\n\r\n");
    EXPECT_TRUE(is_hung_up(caller, milliseconds(10'000)));
  }
  const auto took = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - start);
  leave_all(ranks);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("tutti: rank 1: turned away 127.0.0.1:"), std::string::npos) << said;
  EXPECT_NE(said.find("GET / HTTP/1.1"), std::string::npos) << said;
  EXPECT_LE(std::count(said.begin(), said.end(), '\n'), took.count() + 2);
}

}  // namespace
}  // namespace tutti::internal
