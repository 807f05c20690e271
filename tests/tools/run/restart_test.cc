// Restarts over hosts: several launchers of one job, here on one host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "net/free_port.h"
#include "net/network.h"
#include "net/socket.h"
#include "tools/shell.h"

namespace tutti::internal::tools {
namespace {

using testing::HasSubstr;
using testing::Not;

// A free port, and the one after it.
int two_free_ports() {
  while (true) {
    const auto port = free_port();
    try {
      listen_at(*Endpoint::parse("127.0.0.1", static_cast<std::uint16_t>(port + 1)));
      return port;
    } catch (const std::exception&) {  // in use: try others
    }
  }
}

class Restarts : public testing::Test {
 protected:
  Restarts() : folder_((std::filesystem::temp_directory_path() / "tutti-test-XXXXXX").string()) {
    if (mkdtemp(folder_.data()) == nullptr) ADD_FAILURE() << "no folder";
  }
  ~Restarts() override { std::filesystem::remove_all(folder_); }

  // A launcher of two, whose own process is returned. Words begin with the last options.
  pid_t begin(int node, const std::string& words, const std::string& variables = "TUTTI_SECRET=s3cret") {
    return start("exec > " + file("out", node) + " 2> " + file("err", node) + "; export " + variables +
                 "; exec setsid $TUTTI run --nnodes 2 --node-rank " + std::to_string(node) +
                 " --master-addr 127.0.0.1 --master-port " + std::to_string(port_) + " " + words);
  }

  std::string out(int node) const { return content(file("out", node)); }
  std::string err(int node) const { return content(file("err", node)); }
  int port() const { return port_; }
  std::string flag() const { return folder_ + "/flag"; }

  // Waits until `words` have come.
  bool says(int node, const std::string& words) const {
    for (int tries = 0; tries < 500; ++tries) {
      if (err(node).find(words) != std::string::npos) return true;
      usleep(20'000);
    }
    return false;
  }

 private:
  std::string file(const std::string& name, int node) const { return folder_ + "/" + name + std::to_string(node); }
  static std::string content(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  std::string folder_;
  int port_ = two_free_ports();
};

TEST_F(Restarts, AKilledRankIsOneRestartHoweverLongTheOthersCompute) {
  const std::string words = "-n 2 --max-restarts 3 " COMPUTING_RANK " 3 " + flag();
  const pid_t other = begin(1, words), zero = begin(0, words);
  EXPECT_EQ(wait_for(zero), 0);
  EXPECT_EQ(wait_for(other), 0);
  EXPECT_THAT(err(0), HasSubstr("node 1: rank 3 was killed by signal 9 (Killed); stopping the ranks\n"));
  EXPECT_THAT(err(1), HasSubstr("rank 3 was killed by signal 9 (Killed); stopping the others\n"));
  for (const int node : {0, 1}) {
    EXPECT_THAT(err(node), HasSubstr("starting all ranks again (1 of 3)\n"));
    EXPECT_THAT(err(node), Not(HasSubstr("(2 of 3)")));
    EXPECT_THAT(out(node), HasSubstr("rank " + std::to_string(2 * node) + ", attempt 1: 16\n"));
  }
}

TEST_F(Restarts, AreCountedByTheJobAndEveryLauncherSaysWhenTheyAreUsedUp) {
  // In attempt 0, node 0's rank fails, then node 1's.
  const std::string words =
      "--max-restarts 1 sh -c 'echo $TUTTI_ATTEMPT; [ $TUTTI_ATTEMPT = $TUTTI_RANK ] && exit 5; sleep 1'";
  const pid_t other = begin(1, words), zero = begin(0, words);
  EXPECT_EQ(wait_for(zero), 1);
  EXPECT_EQ(wait_for(other), 1);
  for (const int node : {0, 1}) {
    EXPECT_EQ(out(node), "0\n1\n");
    EXPECT_THAT(err(node), HasSubstr("starting all ranks again (1 of 1)\n"));
    EXPECT_THAT(err(node),
                testing::EndsWith("tutti run: the job has failed: its one restart is used up. node 1: rank 1 "
                                  "exited with status 5\n"));
  }
}

TEST_F(Restarts, ANodeThatHasSucceededWaitsForTheOthersAndIsStartedAgainWithThem) {
  const std::string words =
      "--max-restarts 1 sh -c 'echo $TUTTI_ATTEMPT; [ $TUTTI_RANK = 0 ] && exit 0; sleep 1; [ $TUTTI_ATTEMPT = 1 ]'";
  const pid_t other = begin(1, words), zero = begin(0, words);
  EXPECT_EQ(wait_for(zero), 0) << err(0);
  EXPECT_EQ(wait_for(other), 0) << err(1);
  for (const int node : {0, 1}) EXPECT_EQ(out(node), "0\n1\n");
}

TEST_F(Restarts, AnInterruptOnAnyHostEndsTheJobOnAll) {
  for (const int node : {0, 1}) {
    const std::string sleep = unique_sleep(), words = "--max-restarts 3 " + sleep;
    const pid_t launchers[] = {begin(0, words), begin(1, words)};
    ASSERT_TRUE(reaches(sleep, 6)) << err(0) << err(1);  // the launchers, their guardians, the ranks
    kill(launchers[node], SIGINT);
    for (const pid_t launcher : launchers) EXPECT_EQ(wait_for(launcher), 1);
    EXPECT_TRUE(reaches(sleep, 0));
    const std::string where = "node " + std::to_string(node) + ": Interrupt";
    EXPECT_THAT(err(1 - node), HasSubstr(where + "; stopping the ranks\n"));
    for (const int any : {0, 1}) {
      EXPECT_THAT(err(any), HasSubstr("the job was ended on " + where));
      EXPECT_THAT(err(any), Not(HasSubstr("again")));
    }
  }
}

TEST_F(Restarts, AnInterruptEndsALauncherThatWaitsForTheOthers) {
  for (const int node : {0, 1}) {
    const std::string sleep = unique_sleep();
    const pid_t launcher = begin(node, "--max-restarts 3 " + sleep);
    ASSERT_TRUE(reaches(sleep, 2));
    kill(launcher, SIGINT);
    EXPECT_EQ(wait_for(launcher), 1);
  }
}

TEST_F(Restarts, AKilledLauncherEndsTheJobEverywhereAndIsNamed) {
  for (const int node : {0, 1}) {
    const std::string sleep = unique_sleep(), words = "--max-restarts 3 " + sleep;
    const pid_t launchers[] = {begin(0, words), begin(1, words)};
    ASSERT_TRUE(reaches(sleep, 6)) << err(0) << err(1);
    kill(launchers[node], SIGKILL);
    for (const int any : {0, 1}) EXPECT_EQ(wait_for(launchers[any]), any == node ? 128 + SIGKILL : 1);
    EXPECT_TRUE(reaches(sleep, 0));
    EXPECT_THAT(err(1 - node), HasSubstr("node " + std::to_string(node) + ": its launcher was killed"));
    EXPECT_THAT(err(1 - node), Not(HasSubstr("again")));
  }
}

TEST_F(Restarts, AHostThatIsSilentEndsTheJobAndIsNamed) {
  const std::string variables = "TUTTI_SECRET=s3cret TUTTI_CONNECT_TIMEOUT=1.5";
  for (const int node : {0, 1}) {
    const std::string sleep = unique_sleep(), words = "--max-restarts 3 " + sleep;
    const pid_t launchers[] = {begin(0, words, variables), begin(1, words, variables)};
    ASSERT_TRUE(reaches(sleep, 6)) << err(0) << err(1);
    kill(-launchers[node], SIGSTOP);
    EXPECT_EQ(wait_for(launchers[1 - node]), 1);
    EXPECT_THAT(err(1 - node), HasSubstr("the job has failed: node " + std::to_string(node) +
                                         " is lost (its launcher was silent for 4.5 s)\n"));
    kill(-launchers[node], SIGCONT);
    EXPECT_EQ(wait_for(launchers[node]), 1);
    EXPECT_THAT(err(node), HasSubstr("node " + std::to_string(1 - node) + " is lost"));
    EXPECT_TRUE(reaches(sleep, 0));
  }
}

TEST_F(Restarts, LaunchersThatAreStartedDifferentlyAreRefusedInWords) {
  const pid_t other = begin(1, "--max-restarts 2 true"), zero = begin(0, "--max-restarts 3 true");
  EXPECT_EQ(wait_for(zero), 1);
  EXPECT_EQ(wait_for(other), 1);
  for (const int node : {0, 1}) {
    EXPECT_THAT(err(node), HasSubstr("node 1 was started with `--nnodes 2 --nproc-per-node 1 --max-restarts 2`, node 0 "
                                     "with `--nnodes 2 --nproc-per-node 1 --max-restarts 3`"));
  }
}

TEST_F(Restarts, ALauncherThatDoesNotComeIsNamed) {
  const std::string soon = "TUTTI_SECRET=s3cret TUTTI_JOIN_TIMEOUT=3";
  EXPECT_EQ(wait_for(begin(0, "--max-restarts 1 true", soon)), 1);
  EXPECT_THAT(err(0), HasSubstr("the launcher of node 1 did not come within 3 s: was `tutti run` started there"));
  EXPECT_EQ(wait_for(begin(1, "--max-restarts 1 true", soon)), 1);
  EXPECT_THAT(err(1), HasSubstr("the launcher of node 0 could not be reached at 127.0.0.1:"));
  EXPECT_THAT(err(1), HasSubstr("within 3 s (Connection refused)"));
}

TEST_F(Restarts, ALauncherThatWaitsSaysForWhom) {
  const std::string variables = "TUTTI_SECRET=s3cret TUTTI_CONNECT_TIMEOUT=0.5";
  const pid_t other = begin(1, "--max-restarts 1 true", variables);
  EXPECT_TRUE(says(1, "waiting for the launcher of node 0 at 127.0.0.1:")) << err(1);
  kill(other, SIGTERM);
  EXPECT_EQ(wait_for(other), 1);
  const pid_t zero = begin(0, "--max-restarts 1 true", variables);
  EXPECT_TRUE(says(0, "waiting for the launcher of node 1 since")) << err(0);
  EXPECT_EQ(wait_for(begin(1, "--max-restarts 1 true", variables)), 0);
  EXPECT_EQ(wait_for(zero), 0);
}

TEST_F(Restarts, ALauncherWithAnotherSecretIsRefusedAndDoesNoHarm) {
  const pid_t zero = begin(0, "--max-restarts 1 true");
  EXPECT_EQ(wait_for(begin(1, "--max-restarts 1 true", "TUTTI_SECRET=guessed")), 1);
  EXPECT_THAT(err(1), HasSubstr("the secret of node 1 differs from node 0's"));
  EXPECT_EQ(wait_for(begin(1, "--max-restarts 1 true")), 0) << err(1);
  EXPECT_EQ(wait_for(zero), 0) << err(0);
}

TEST_F(Restarts, ASecondLauncherOfAHostIsTurnedAwayAndDoesNoHarm) {
  const std::string words = "--max-restarts 1 sh -c 'echo begun >&2; i=0; until [ -e " + flag() +
                            " ] || [ $i = 1000 ]; do i=$((i+1)); sleep 0.02; done'";
  const pid_t zero = begin(0, words), other = begin(1, words);
  EXPECT_TRUE(says(1, "begun"));
  EXPECT_EQ(wait_for(begin(1, words)), 1);
  EXPECT_THAT(err(1), HasSubstr("node 1 is there already: was its launcher started twice?"));
  std::ofstream(flag()).put('\n');
  EXPECT_EQ(wait_for(zero), 0) << err(0);
  EXPECT_EQ(wait_for(other), 0);
}

TEST_F(Restarts, LaunchersOfOneHostNeedNoSecret) {
  const std::string words = "--max-restarts 1 sh -c '[ $TUTTI_ATTEMPT = 1 ] || exit 5'", none = "HOME=/nowhere";
  const pid_t zero = begin(0, words, none), other = begin(1, words, none);
  EXPECT_EQ(wait_for(zero), 0) << err(0);
  EXPECT_EQ(wait_for(other), 0) << err(1);
}

TEST_F(Restarts, APortThatIsTakenIsNamed) {
  const Socket taken = listen_at(*Endpoint::parse("127.0.0.1", static_cast<std::uint16_t>(port() + 1)));
  EXPECT_EQ(wait_for(begin(0, "--max-restarts 1 true")), 1);
  EXPECT_THAT(err(0),
              HasSubstr("the launchers, which meet at the port after that of the ranks, cannot: cannot listen at "
                        "127.0.0.1:" +
                        std::to_string(port() + 1)));
}

TEST_F(Restarts, WithoutThemLaunchersDoNotMeet) {
  EXPECT_EQ(wait_for(begin(1, "sh -c 'exit 5'")), 1);
  EXPECT_EQ(err(1), "tutti run: rank 1 exited with status 5\n");
}

}  // namespace
}  // namespace tutti::internal::tools
