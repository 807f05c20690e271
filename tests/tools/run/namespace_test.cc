// `tutti run` where the loopback interface is not as usual.
#include <gtest/gtest.h>

#include "tools/shell.h"

namespace tutti::internal::tools {
namespace {

class RunNamespace : public testing::Test {
 protected:
  void SetUp() override {
    if (shell("unshare -n true").status != 0) GTEST_SKIP() << "this process may not make network namespaces";
  }
};

TEST_F(RunNamespace, StartsAJobWhereTheLoopbackHasIpv6Alone) {
  const Result run = shell(
      "unshare -n sh -c 'ip link set lo up && ip address del 127.0.0.1/8 dev lo && $TUTTI run -n 2 " FIRST_PROGRAM "'");
  EXPECT_EQ(run.status, 0) << run.err;
}

TEST_F(RunNamespace, StartsAJobWhereTheLoopbackIsDown) {
  const Result run = shell("unshare -n $TUTTI run -n 2 " FIRST_PROGRAM);
  EXPECT_EQ(run.status, 0) << run.err;
}

}  // namespace
}  // namespace tutti::internal::tools
