// Restarts over two hosts: two network namespaces with a wire between them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/shell.h"

namespace tutti::internal::tools {
namespace {

using testing::HasSubstr;
using testing::Not;

class RestartNamespace : public testing::Test {
 protected:
  void SetUp() override {
    if (shell("unshare -n true").status != 0) GTEST_SKIP() << "this process may not make network namespaces";
  }

  // Runs `script` on the first host, with functions: node 0|1 ARGUMENTS…, a launcher there with those options, and
  // cut, which takes the wire away.
  static Result on_two_hosts(const std::string& script) {
    return shell(
        "unshare -n sh -c '"
        "set -e; export TUTTI_SECRET=s3cret; ip link set lo up; unshare -n sleep 600 & other=$!; "
        "while [ $(readlink /proc/$other/ns/net) = $(readlink /proc/self/ns/net) ]; do sleep 0.02; done; "
        "ip link add wire0 type veth peer name wire1 netns $other; "
        "ip address add 10.7.0.1/24 dev wire0; ip link set wire0 up; "
        "there() { nsenter -t $other -n \"$@\"; }; "
        "there ip link set lo up; there ip address add 10.7.0.2/24 dev wire1; there ip link set wire1 up; "
        "node() { on=$1; shift; set -- $TUTTI run --nnodes 2 --node-rank $on --master-addr 10.7.0.1 \"$@\"; "
        "if [ $on = 1 ]; then there \"$@\"; else \"$@\"; fi; }; "
        "cut() { ip link set wire0 down; }; set +e; " +
        script + "; kill $other; exit $status'");
  }
};

TEST_F(RestartNamespace, AKilledRankOfTheOtherHostIsOneRestart) {
  const Result run = on_two_hosts("flag=$(mktemp -u); node 1 --max-restarts 3 " COMPUTING_RANK
                                  " 3 $flag 2>&1 & launcher=$!; node 0 --max-restarts 3 " COMPUTING_RANK
                                  " 3 $flag; status=$?; wait $launcher; echo node 1: $?; rm $flag");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("node 1: rank 1 was killed by signal 9 (Killed); stopping the ranks\n"));
  EXPECT_THAT(run.err, HasSubstr("starting all ranks again (1 of 3)\n"));
  EXPECT_THAT(run.err, Not(HasSubstr("(2 of 3)")));
  EXPECT_THAT(run.out, HasSubstr("rank 1, attempt 1: 4\n"));
  EXPECT_THAT(run.out, HasSubstr("node 1: 0\n"));
}

TEST_F(RestartNamespace, AHostThatCannotBeReachedEndsTheJobOnBoth) {
  const std::string sleep = unique_sleep();
  const Result run =
      on_two_hosts("export TUTTI_CONNECT_TIMEOUT=1.5; set -- --max-restarts 3 sh -c \"echo begun; exec " + sleep +
                   "\"; begun=$(mktemp); node 1 \"$@\" >$begun 2>&1 & launcher=$!; "
                   "{ while ! grep -q begun $begun; do sleep 0.02; done; cut; } & "
                   "node 0 \"$@\"; status=$?; wait $launcher; echo node 1: $?; cat $begun; rm $begun");
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("the job has failed: node 1 is lost (its launcher was silent for 4.5 s)\n"));
  EXPECT_THAT(run.out, HasSubstr("node 1: 1\n"));
  EXPECT_THAT(run.out, HasSubstr("the job has failed: node 0 is lost (its launcher was silent for 4.5 s)\n"));
  EXPECT_TRUE(reaches(sleep, 0));
}

}  // namespace
}  // namespace tutti::internal::tools
