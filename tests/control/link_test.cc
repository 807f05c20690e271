// Why a connection was not made: whether its other end has said so, or nobody has answered.
#include "control/link.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <cstdlib>

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
