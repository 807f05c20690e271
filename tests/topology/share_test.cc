#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "topology/machine.h"

namespace tutti::internal::topology {
namespace {

// A root folder with the files that a kernel would show.
class Share : public testing::Test {
 protected:
  Share() : root_(std::filesystem::path(testing::TempDir()) / ("share" + std::to_string(getpid()))) {}
  ~Share() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_.string() + path).substr(0, (root_.string() + path).rfind('/')));
    std::ofstream(root_.string() + path) << text;
  }
  int share() const { return processor_share(root_.string()); }
  std::size_t cache(int processor) const { return largest_cache_bytes(processor, root_.string()); }
  bool several_nodes() const { return has_several_nodes(root_.string()); }

 private:
  std::filesystem::path root_;
};

TEST_F(Share, LargestCacheIsTheProcessorsOwn) {
  EXPECT_EQ(cache(0), 0u);
  write("/sys/devices/system/cpu/cpu0/cache/index0/size", "48K\n");
  write("/sys/devices/system/cpu/cpu0/cache/index1/size", "32K\n");
  EXPECT_EQ(cache(0), 48u << 10);
  write("/sys/devices/system/cpu/cpu0/cache/index2/size", "1024K\n");
  write("/sys/devices/system/cpu/cpu0/cache/index3/size", "32768K\n");
  write("/sys/devices/system/cpu/cpu1/cache/index0/size", "16K\n");
  EXPECT_EQ(cache(0), 32u << 20);
  EXPECT_EQ(cache(1), 16u << 10);
}

TEST_F(Share, IsUnlimitedWhereNothingLimitsIt) {
  EXPECT_EQ(share(), 0);
  write("/proc/self/cgroup", "0::/\n");
  EXPECT_EQ(share(), 0);
  write("/sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(share(), 0);
}

TEST_F(Share, IsRoundedDownButNeverNothing) {
  write("/proc/self/cgroup", "0::/\n");
  for (const auto& [max, processors] :
       {std::pair("200000 100000", 2), {"250000 100000", 2}, {"1000000 500000", 2}, {"50000 100000", 1}}) {
    write("/sys/fs/cgroup/cpu.max", max);
    EXPECT_EQ(share(), processors) << max;
  }
}

TEST_F(Share, IsTheLeastOfAllGroupsAround) {
  write("/proc/self/cgroup", "0::/a/b/c\n");
  write("/sys/fs/cgroup/a/b/c/cpu.max", "max 100000\n");
  write("/sys/fs/cgroup/a/b/cpu.max", "800000 100000\n");
  EXPECT_EQ(share(), 8);
  write("/sys/fs/cgroup/a/cpu.max", "300000 100000\n");
  EXPECT_EQ(share(), 3);
  write("/sys/fs/cgroup/a/b/c/cpu.max", "200000 100000\n");
  EXPECT_EQ(share(), 2);
}

TEST_F(Share, InAContainerThatSeesItsHostsPathIsTheRoots) {
  write("/proc/self/cgroup", "0::/docker/f8e1\n");
  write("/sys/fs/cgroup/cpu.max", "400000 100000\n");
  EXPECT_EQ(share(), 4);
  write("/proc/self/cgroup", "0::/../../elsewhere\n");
  EXPECT_EQ(share(), 0) << "a group outside of what can be seen";
}

TEST_F(Share, IsFoundInTheFirstVersionToo) {
  write("/proc/self/cgroup", "9:name=systemd:/\n3:cpuset:/x\n2:cpu,cpuacct:/job\n0::/\n");
  write("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
  write("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(share(), 0);
  write("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "350000\n");
  EXPECT_EQ(share(), 3);
  write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");
  write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(share(), 2);
}

TEST_F(Share, FilesThatMakeNoSenseAreNoLimit) {
  write("/proc/self/cgroup", "nonsense\n0:\n0::\n0::no/path\n");
  write("/sys/fs/cgroup/cpu.max", "200000 100000");
  EXPECT_EQ(share(), 0);
  write("/proc/self/cgroup", "0::/\n");
  for (const std::string max : {"", "many", "200000", "0 100000", "-5 100000", "100000 0"}) {
    write("/sys/fs/cgroup/cpu.max", max);
    EXPECT_EQ(share(), 0) << max;
  }
}

TEST_F(Share, OfMemoryNodesIsReadWithoutHwloc) {
  EXPECT_FALSE(several_nodes());
  for (const auto& [nodes, several] :
       {std::pair("0\n", false), {"0-1\n", true}, {"0,2\n", true}, {"1\n", false}, {"", false}}) {
    write("/sys/devices/system/node/has_memory", nodes);
    EXPECT_EQ(several_nodes(), several) << nodes;
  }
}

}  // namespace
}  // namespace tutti::internal::topology
