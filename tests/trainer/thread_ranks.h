// Ranks as threads of the test, so that the trainer is tested without a communicator.
#pragma once

#include <barrier>
#include <bit>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "trainer/gradient_sync.h"

namespace tutti::trainer {

class ThreadRanks {
 public:
  // Runs body(sync) on one thread a rank; rethrows what the lowest rank threw. A rank that throws leaves the others'
  // sums.
  static void run(int ranks, const std::function<void(GradientSync&)>& body) {
    ThreadRanks job(ranks);
    std::vector<std::exception_ptr> errors(ranks);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        Sync sync(job, rank);
        try {
          body(sync);
        } catch (...) {
          errors[rank] = std::current_exception();
          job.barrier_.arrive_and_drop();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::exception_ptr& error : errors) {
      if (error) std::rethrow_exception(error);
    }
  }

 private:
  class Sync : public GradientSync {
   public:
    Sync(ThreadRanks& job, int rank) : job_(job), rank_(rank) {}
    int rank() const override { return rank_; }
    int size() const override { return static_cast<int>(job_.values_.size()); }

    void sum(std::span<double> values) override {
      job_.values_[rank_] = values;
      job_.barrier_.arrive_and_wait();
      std::vector<double> totals;
      for (std::size_t i = 0; i < values.size(); ++i) totals.push_back(job_.canonical_sum(i, 0, job_.values_.size()));
      job_.barrier_.arrive_and_wait();
      std::copy(totals.begin(), totals.end(), values.begin());
    }

    bool agree(std::uint64_t value) override {
      job_.claims_[rank_] = value;
      job_.barrier_.arrive_and_wait();
      bool same = true;
      for (std::uint64_t claim : job_.claims_) same = same && claim == value;
      job_.barrier_.arrive_and_wait();
      return same;
    }

   private:
    ThreadRanks& job_;
    int rank_;
  };

  explicit ThreadRanks(int ranks) : values_(ranks), claims_(ranks), barrier_(ranks) {}

  // Element i over the ranks [low, high), split at the largest power of two below their number.
  double canonical_sum(std::size_t i, std::size_t low, std::size_t high) const {
    if (high - low == 1) return values_[low][i];
    const std::size_t middle = low + std::bit_floor(high - low - 1);
    return canonical_sum(i, low, middle) + canonical_sum(i, middle, high);
  }

  std::vector<std::span<double>> values_;
  std::vector<std::uint64_t> claims_;
  std::barrier<> barrier_;
};

}  // namespace tutti::trainer
