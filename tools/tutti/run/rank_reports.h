// What ranks say beside their exit status: the launcher's end of control/launcher.h.
#pragma once

#include <string>
#include <vector>

namespace tutti::internal::tools {

// A datagram socket of this process. The kernel says of each datagram which user sent it; those of other users are
// dropped.
class RankReports {
 public:
  // Listens at `name` in the abstract namespace. Without success, with errno set, this is false.
  explicit RankReports(const std::string& name);
  ~RankReports();
  RankReports(const RankReports&) = delete;
  RankReports& operator=(const RankReports&) = delete;
  explicit operator bool() const { return fd_ >= 0; }
  int fd() const { return fd_; }

  struct Report {
    int rank;
    std::string words;  // in one line
  };
  // What has come since the last call; never blocks.
  std::vector<Report> take() const;

 private:
  int fd_;
};

}  // namespace tutti::internal::tools
