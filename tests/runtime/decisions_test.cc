// What a job says of its decisions, to a sink of the user's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <string>
#include <vector>

#include "runtime/ranks.h"

namespace tutti::internal {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::Not;

// What two ranks say, over which they share "s3cret", who make two calls of one kind and one of another. Not what they
// warn of: that depends on the machine.
std::vector<std::string> said(LogLevel level, const std::string& transport) {
  std::mutex mutex;
  std::vector<std::string> lines;
  Settings settings{.secret = "s3cret", .transport = transport};
  settings.log_level = level;
  settings.log_sink = [&](const LogLine& line) {
    if (line.level == LogLevel::warn) return;
    const std::lock_guard lock(mutex);
    lines.push_back("rank " + std::to_string(line.rank) + ": " + std::string(line.text));
  };
  const auto thrown = outcomes(2, settings, [](Communicator& world) {
    std::vector<float> values(4, 1);
    world.all_reduce(std::span(values), Op::sum);
    world.all_reduce(std::span(values), Op::sum);
    world.all_reduce(std::span(values), Op::max, {.algorithm = Algorithm::one_shot});
  });
  for (const auto& error : thrown) EXPECT_FALSE(error) << error->what();
  return lines;
}

TEST(Decisions, OfJoiningAreOneLineEach) {
  const auto shm = said(LogLevel::info, "shm");
  for (const std::string rank : {"rank 0: ", "rank 1: "}) {
    EXPECT_THAT(shm, Contains(rank + "is one of 2 ranks; transports: shm to 1 (TUTTI_TRANSPORT: shm)"));
    EXPECT_THAT(shm, Contains(AllOf(HasSubstr(rank), HasSubstr("while it waits"))));
    EXPECT_THAT(shm, Contains(rank + "chooses algorithms by the built-in table"));
    EXPECT_THAT(shm, Contains(AllOf(HasSubstr(rank), HasSubstr("listens for other ranks"))));
  }
  EXPECT_EQ(shm.size(), 8U);
  EXPECT_THAT(said(LogLevel::info, "tcp"), Contains(HasSubstr("transports: tcp to 1 (TUTTI_TRANSPORT: tcp")));
}

TEST(Decisions, OfEachKindOfCallAreTracedOnce) {
  std::vector<std::string> calls;
  for (const std::string& line : said(LogLevel::trace, "shm"))
    if (line.starts_with("rank 1: a new kind of call")) calls.push_back(line);
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_THAT(calls[0], AllOf(HasSubstr("all_reduce (float32 x 4, sum, "), HasSubstr("as the table says")));
  EXPECT_THAT(calls[1], AllOf(HasSubstr("all_reduce (float32 x 4, max, one_shot)"), HasSubstr("as the call says")));
}

TEST(Decisions, HoldNoSecretAndAreNotSaidUnasked) {
  EXPECT_THAT(said(LogLevel::trace, "tcp"), Each(Not(HasSubstr("s3cret"))));
  EXPECT_THAT(said(LogLevel::warn, "tcp"), testing::IsEmpty());
}

}  // namespace
}  // namespace tutti::internal
