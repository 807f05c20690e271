// The ranks of a communicator, and what messages to users call them.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "types/call.h"

namespace tutti::internal {

class Members {
 public:
  // job_ranks[r] is the job's rank of rank r here; `rank` is this one's.
  Members(std::vector<int> job_ranks, int rank) : job_ranks_(std::move(job_ranks)), rank_(rank) {}
  // One rank of another communicator, alone.
  Members(const Members& of, int rank) : job_ranks_{of.job_rank_of(rank)}, rank_(0), numbers_{rank} {}
  // Two ranks of another communicator: what the first sends to the second. Users know them by their numbers there.
  Members(const Members& of, int from, int to)
      : job_ranks_{of.job_rank_of(from), of.job_rank_of(to)}, rank_(of.rank() == from ? 0 : 1), numbers_{from, to} {}

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(job_ranks_.size()); }
  const std::vector<int>& job_ranks() const { return job_ranks_; }
  int job_rank_of(int rank) const { return job_ranks_[rank]; }
  int rank_of(int job_rank) const {  // -1: not in here
    const auto found = std::ranges::find(job_ranks_, job_rank);
    return found == job_ranks_.end() ? -1 : static_cast<int>(found - job_ranks_.begin());
  }

  bool is_lane() const { return numbers_.size() == 2; }  // what one rank sends to another

  // By which users know a rank; -1 stays.
  int number_of(int rank) const { return rank < 0 || numbers_.empty() ? rank : numbers_[rank]; }

  // "rank 2", and where the job calls it otherwise "rank 2 (of the job: 5)".
  std::string name_of(int rank) const {
    std::string name = "rank " + std::to_string(number_of(rank));
    if (rank < 0 || rank >= size() || job_ranks_[rank] == number_of(rank)) return name;
    return name + " (of the job: " + std::to_string(job_ranks_[rank]) + ")";
  }
  std::string own_name() const { return name_of(rank_); }
  // "rank 2", "ranks 2, 5 and 7"; the first few of many.
  std::string names_of(const std::vector<int>& ranks) const {
    if (ranks.size() == 1) return name_of(ranks.front());
    const std::size_t named = std::min(ranks.size(), kNamed);
    std::string text = "ranks";
    for (std::size_t i = 0; i < named; ++i) {
      text += i == 0 ? " " : i + 1 == ranks.size() ? " and " : ", ";
      text += std::to_string(number_of(ranks[i]));
    }
    return named == ranks.size() ? text : text + " and " + std::to_string(ranks.size() - named) + " more";
  }
  static constexpr std::size_t kNamed = 8;

  // As describe(call), and of a transfer also "from rank 0 to rank 3".
  std::string name_of(const Call& call) const {
    return !is_lane() ? describe(call) : describe(call) + " from " + name_of(0) + " to " + name_of(1);
  }

 private:
  std::vector<int> job_ranks_;
  int rank_;
  std::vector<int> numbers_;  // empty: a rank's own number
};

}  // namespace tutti::internal
