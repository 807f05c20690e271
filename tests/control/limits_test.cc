// What a rank does without descriptors, and without standard streams.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "control/control_ranks.h"

namespace tutti::internal {
namespace {

using namespace testing_ranks;
using Clock = std::chrono::steady_clock;

// As long as it lives, this process may have `more` descriptors than it has.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(int more) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const int lowest = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(lowest);
    const rlimit less{static_cast<rlim_t>(lowest + more), before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &less), 0);
  }
  ~DescriptorLimit() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

// What `work` returned in a process of its own.
pid_t in_process(const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) _exit(work());
  return child;
}
int status_of(pid_t child) {
  int status = -1;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(ControlLimits, EveryRankHearsThatRank0HasTooFewDescriptors) {
  const auto settings = job(8, "s3cret");
  const pid_t zero = in_process([&] {
    const DescriptorLimit limit(8);
    return join(settings[0]).says("raise `ulimit -n`") ? 0 : 1;
  });
  const auto start = Clock::now();
  for (const Outcome& rank : join_all({settings.begin() + 1, settings.end()}))
    EXPECT_TRUE(rank.says("no descriptor left") && rank.says("raise `ulimit -n` where rank 0 runs")) << rank.message();
  EXPECT_LT(Clock::now() - start, milliseconds(15'000));
  EXPECT_EQ(status_of(zero), 0);
}

TEST(ControlLimits, ARankWithTooFewDescriptorsForItselfSaysSo) {
  auto settings = job(2, "s3cret");
  settings[0].connect_timeout = milliseconds(1'000);  // so long rank 0 stays to tell the other one
  for (int more = 0; more < 4; ++more) {
    const DescriptorLimit limit(more);
    for (const Settings& s : settings) {
      const auto start = Clock::now();
      EXPECT_TRUE(join(s).says("raise `ulimit -n`")) << s.rank << " with " << more;
      EXPECT_LT(Clock::now() - start, milliseconds(5'000));
    }
  }
}

TEST(ControlLimits, ADataConnectionThatFindsNoDescriptorIsAnErrorOnBothEnds) {
  auto ranks = join_all(job(2));
  Inbox lower(*ranks[0].control), upper(*ranks[1].control);
  for (const Path path : {Path::local, Path::tcp}) {
    const std::uint64_t communicator = path == Path::local ? 7 : 8;
    const DescriptorLimit limit(1);  // for the end that connects
    ranks[1].control->connect(0, path, communicator);
    const auto up = upper.connection(0, communicator), down = lower.connection(1, communicator);
    ASSERT_TRUE(up && down);
    EXPECT_NE(up->error.find("rank 0 has no descriptor left for it: raise `ulimit -n`"), std::string::npos)
        << up->error;
    EXPECT_NE(down->error.find("no descriptor left for the connection to rank 1: raise `ulimit -n` where rank 0 runs"),
              std::string::npos)
        << down->error;
  }
  leave_all(ranks);
}

// A descriptor may have that number for the moment until it gets another.
bool stays_open(int fd) {
  for (int i = 0; i < 1000; ++i) {
    if (fcntl(fd, F_GETFD) < 0) return false;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

TEST(ControlLimits, NoDescriptorTakesTheNumberOfAStandardStream) {
  EXPECT_EQ(status_of(in_process([] {
              for (const int fd : {0, 1, 2}) close(fd);
              auto ranks = join_all(job(2, "s3cret"));
              if (!ranks[0].control || !ranks[1].control) return 1;
              Inbox lower(*ranks[0].control), upper(*ranks[1].control);
              ranks[1].control->connect(0, Path::tcp, 7);
              if (!lower.connection(1, 7) || !upper.connection(0, 7)) return 2;
              for (const int fd : {0, 1, 2})
                if (stays_open(fd)) return 10 + fd;
              leave_all(ranks);
              return 0;
            })),
            0);
}

}  // namespace
}  // namespace tutti::internal
