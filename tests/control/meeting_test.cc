// Where ranks meet: a place at which nobody is, and places as they are written.
#include <gtest/gtest.h>

#include "control/control_ranks.h"
#include "tutti/store.h"

namespace tutti::internal {
namespace {

using namespace testing_ranks;
using Clock = std::chrono::steady_clock;

TEST(ControlJoin, ARankBeyondTheSizeSaysSoSoonWhereRank0IsNotThere) {
  for (int way = 0; way < 3; ++way) {
    Settings settings = job(2, way == 1 ? "s3cret" : "")[1];
    settings.rank = 5;
    settings.connect_timeout = milliseconds(200);
    const auto store = make_memory_store();
    const auto start = Clock::now();
    const Outcome rank = join(settings, way == 2 ? store.get() : nullptr);
    EXPECT_LT(Clock::now() - start, milliseconds(10'000));
    ASSERT_TRUE(rank.error);
    EXPECT_EQ(rank.error->code, ErrorCode::invalid_argument);
    EXPECT_TRUE(rank.says("rank 5 could not join: rank 5 is outside 0..1, the job having 2 ranks")) << rank.message();
  }
}

TEST(ControlJoin, AnAddressInBracketsIsAnAddress) {
  auto settings = job(2, "s3cret");
  for (Settings& s : settings) s.master_address = "[127.0.0.1]";
  auto ranks = join_all(settings);
  for (const Outcome& rank : ranks) EXPECT_TRUE(rank.control) << rank.message();
  leave_all(ranks);
}

}  // namespace
}  // namespace tutti::internal
