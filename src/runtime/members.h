// The ranks of a communicator, and what messages to users call them.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace tutti::internal {

class Members {
 public:
  // job_ranks[r] is the job's rank of rank r here; `rank` is this one's.
  Members(std::vector<int> job_ranks, int rank) : job_ranks_(std::move(job_ranks)), rank_(rank) {}

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(job_ranks_.size()); }
  const std::vector<int>& job_ranks() const { return job_ranks_; }
  int job_rank_of(int rank) const { return job_ranks_[rank]; }
  int rank_of(int job_rank) const {  // -1: not in here
    const auto found = std::ranges::find(job_ranks_, job_rank);
    return found == job_ranks_.end() ? -1 : static_cast<int>(found - job_ranks_.begin());
  }

  // "rank 2", and where the job calls it otherwise "rank 2 (of the job: 5)".
  std::string name_of(int rank) const {
    std::string name = "rank " + std::to_string(rank);
    if (rank < 0 || rank >= size() || job_ranks_[rank] == rank) return name;
    return name + " (of the job: " + std::to_string(job_ranks_[rank]) + ")";
  }
  std::string own_name() const { return name_of(rank_); }

 private:
  std::vector<int> job_ranks_;
  int rank_;
};

}  // namespace tutti::internal
