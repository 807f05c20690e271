// What control groups say of a process's share of the processors.
#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include "topology/processors.h"

namespace tutti::internal::topology {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

// cgroup v2: "200000 100000" is two processors, "max 100000" no limit.
double share_in_v2(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  double quota_us = 0, period_us = 0;
  return file >> quota_us >> period_us && quota_us > 0 && period_us > 0 ? quota_us / period_us : kUnlimited;
}

// cgroup v1: a quota of -1 is no limit.
double share_in_v1(const std::string& folder) {
  std::ifstream quota(folder + "/cpu.cfs_quota_us"), period(folder + "/cpu.cfs_period_us");
  double quota_us = 0, period_us = 0;
  return quota >> quota_us && period >> period_us && quota_us > 0 && period_us > 0 ? quota_us / period_us : kUnlimited;
}

// The least share of the group `path` and all around it. In a container the path may be the host's, and only the root
// be there: that is the container's own group then.
template <class ShareIn>
double least_share(const std::string& mount, std::string path, ShareIn share_in) {
  double least = share_in(mount);
  for (; path.size() > 1; path.erase(path.rfind('/'))) least = std::min(least, share_in(mount + path));
  return least;
}

}  // namespace

// A line of /proc/self/cgroup: "4:cpu,cpuacct:/path", of v2 "0::/path".
int processor_share(const std::string& root) {
  std::ifstream groups(root + "/proc/self/cgroup");
  double least = kUnlimited;
  for (std::string line; std::getline(groups, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos || line.find("/..", second) != std::string::npos)
      continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    if (!path.starts_with('/')) continue;
    if (controllers.empty()) {
      least = std::min(least, least_share(root + "/sys/fs/cgroup", path, share_in_v2));
    } else if (("," + controllers + ",").find(",cpu,") != std::string::npos) {
      for (const std::string& mount : {controllers, std::string("cpu")})
        least = std::min(least, least_share(root + "/sys/fs/cgroup/" + mount, path, share_in_v1));
    }
  }
  return least == kUnlimited ? 0 : std::max(1, static_cast<int>(std::min(least, 1e6)));
}

}  // namespace tutti::internal::topology
