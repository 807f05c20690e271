// Collectives of one rank through the program: some have nothing to move, and an exclusive scan has no output at all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "collectives/catalogue.h"
#include "tools/shell.h"
#include "types/collective.h"

namespace tutti::internal::tools {
namespace {

TEST(OneRank, CanBenchEveryCollective) {
  for (const CollectiveTraits& each : kCollectives) {
    const Result run =
        shell("$TUTTI bench " + std::string(each.name) + " -n 1 --transport shm --sizes 400 --iterations 2 --rounds 1");
    EXPECT_EQ(run.status, 0) << each.name << ": " << run.err;
    EXPECT_THAT(run.out, testing::HasSubstr(" 0 wrong\n")) << each.name;
  }
}

TEST(OneRank, HasEveryAlgorithmProven) {
  for (const AlgorithmEntry& entry : catalogue()) {
    const Result run = shell("$TUTTI plan " + std::string(to_string(entry.algorithm)) + " --collective " +
                             std::string(to_string(entry.collective)) + " -n 1 --verify");
    EXPECT_EQ(run.status, 0) << name_of(entry) << ": " << run.out << run.err;
  }
}

}  // namespace
}  // namespace tutti::internal::tools
