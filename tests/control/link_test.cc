// Why a connection was not made: whether its other end has said so, or nobody has answered.
#include "control/link.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

namespace tutti::internal {
namespace {

using namespace std::chrono_literals;

struct Ending {
  std::string why;
  bool is_unanswered = false;
};

// Of a connection to that place, during which the command runs.
Ending ending_of_call(const Endpoint& place, const std::string& command) {
  int error = 0;
  Socket socket = start_connecting(place, error);
  EXPECT_EQ(error, EINPROGRESS);
  boost::asio::io_context io;
  const auto link = std::make_shared<Link>(
      io, std::move(socket), Handshake::connecting({Handshake::Purpose::control, 0, 1, 0}, "key", random_digest()));
  Ending ending;
  link->on_closed = [&](const std::string& why) { ending = {why, link->is_unanswered()}; };
  link->start(true, 5s, 5s);
  EXPECT_EQ(std::system(command.c_str()), 0);
  io.run();
  link->on_closed = nullptr;
  return ending;
}

void expect_endings() {
  EXPECT_EQ(std::system("ip link set lo up && ip link add veth0 type veth peer name veth1 && ip link set veth1 up && "
                        "ip address add 10.79.0.1/24 dev veth0 && ip link set veth0 up"),
            0);
  const Ending refused = ending_of_call(*Endpoint::parse("127.0.0.1", 9), "true");
  EXPECT_EQ(refused.why, "Connection refused");
  EXPECT_FALSE(refused.is_unanswered);
  const Ending lost =
      ending_of_call(*Endpoint::parse("10.79.0.2", 9), "ip neighbour replace 10.79.0.2 dev veth0 nud failed");
  EXPECT_EQ(lost.why, "No route to host");
  EXPECT_TRUE(lost.is_unanswered);
}

// Who calls has got no processor for longer than the limit. Its proof has just gone out: whoever accepts it has the
// connection from then on, and would take its end for a death.
TEST(Link, TheTimeInWhichNothingWasReadIsNotTheOtherEndsSilence) {
  constexpr auto kLimit = 1500ms;
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const Socket other(ends[1]);
  ASSERT_EQ(::fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
  boost::asio::io_context io;
  const auto link = std::make_shared<Link>(
      io, Socket(ends[0]), Handshake::connecting({Handshake::Purpose::control, 0, 1, 0}, "key", random_digest()));
  bool is_authenticated = false;
  std::string why;
  link->on_authenticated = [&] { is_authenticated = true; };
  link->on_closed = [&](const std::string& what) { why = what; };
  link->start(false, kLimit, kLimit);

  Handshake answers = Handshake::accepting(
      {.rank = 1, .size = 2, .control_key = "key", .data_key = "key", .takes_control = true, .takes_data = false},
      random_digest());
  std::array<std::byte, 64> piece;
  const auto exchange = [&] {
    answers.feed(std::span(piece).first(static_cast<std::size_t>(::read(other.fd(), piece.data(), answers.wanted()))));
    const auto answer = answers.take_output();
    ASSERT_EQ(::send(other.fd(), answer.data(), answer.size(), MSG_NOSIGNAL), static_cast<ssize_t>(answer.size()));
  };
  exchange();                                   // the challenge
  std::this_thread::sleep_for(kLimit + 100ms);  // the caller reads nothing
  io.poll();
  exchange();  // the verdict
  EXPECT_TRUE(answers.done());
  std::this_thread::sleep_for(kLimit + 100ms);
  io.poll();
  EXPECT_TRUE(is_authenticated) << why;
  EXPECT_EQ(why, "");
  link->on_authenticated = nullptr;
  link->on_closed = nullptr;
  link->close();
}

TEST(Link, AHostThatIsOutOfReachHasNotRefusedAConnection) {
  const pid_t process = ::fork();
  if (process == 0) {
    if (::unshare(CLONE_NEWNET) != 0) ::_exit(77);
    expect_endings();
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(process, &status, 0), process);
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no network namespaces";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace tutti::internal
