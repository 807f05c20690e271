#include "topology/processors.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <memory>
#include <numeric>

namespace tutti::internal::topology {
namespace {

// A set of the kernel's, of any size.
class Mask {
 public:
  explicit Mask(int processors) : processors_(processors), set_(CPU_ALLOC(processors)) { CPU_ZERO_S(bytes(), get()); }
  std::size_t bytes() const { return CPU_ALLOC_SIZE(processors_); }
  int processors() const { return processors_; }
  cpu_set_t* get() const { return set_.get(); }

 private:
  struct Free {
    void operator()(cpu_set_t* set) const { CPU_FREE(set); }
  };
  int processors_;
  std::unique_ptr<cpu_set_t, Free> set_;
};

constexpr int kUsualProcessors = 1024, kMaxProcessors = 1 << 20;

// Hands out processors such that each rank has its own, as long as that is possible (Kuhn's augmenting paths).
class Seating {
 public:
  explicit Seating(const std::vector<Processors>& ranks) : ranks_(ranks) {
    for (const Processors& rank : ranks)
      if (!rank.empty()) owner_.resize(std::max<std::size_t>(owner_.size(), rank.back() + 1), -1);
  }

  bool seat_all() {
    std::vector<int> order(ranks_.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](int rank) { return ranks_[rank].size(); });  // who can least choose
    return std::ranges::all_of(order, [&](int rank) {
      tried_.assign(owner_.size(), false);
      return seat(rank);
    });
  }

 private:
  bool seat(int rank) {
    for (const int processor : ranks_[rank])
      if (owner_[processor] < 0) {
        owner_[processor] = rank;
        return true;
      }
    for (const int processor : ranks_[rank]) {
      if (tried_[processor]) continue;
      tried_[processor] = true;
      if (!seat(owner_[processor])) continue;
      owner_[processor] = rank;
      return true;
    }
    return false;
  }

  const std::vector<Processors>& ranks_;
  std::vector<int> owner_;   // by processor; -1: free
  std::vector<bool> tried_;  // by processor
};

}  // namespace

Processors allowed_processors() {
  Processors found;
  for (int size = kUsualProcessors; size <= kMaxProcessors; size *= 2) {
    const Mask mask(size);
    if (::sched_getaffinity(0, mask.bytes(), mask.get()) != 0) {
      if (errno == EINVAL) continue;  // the machine has more
      break;
    }
    for (int processor = 0; processor < size; ++processor)
      if (CPU_ISSET_S(processor, mask.bytes(), mask.get())) found.push_back(processor);
    return found;
  }
  found.resize(static_cast<std::size_t>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L)));
  std::iota(found.begin(), found.end(), 0);
  return found;
}

bool run_on(const Processors& processors) noexcept {
  if (processors.empty()) return false;
  const Mask mask(std::max(processors.back() + 1, kUsualProcessors));
  for (const int processor : processors) CPU_SET_S(processor, mask.bytes(), mask.get());
  return ::sched_setaffinity(0, mask.bytes(), mask.get()) == 0;
}

int usable_processors() {
  const int allowed = static_cast<int>(allowed_processors().size());
  const int share = processor_share();
  return share > 0 ? std::min(allowed, share) : allowed;
}

std::size_t largest_cache_bytes(int processor, const std::string& root) {
  std::size_t largest = 0;
  for (int index = 0;; ++index) {
    std::ifstream file(root + "/sys/devices/system/cpu/cpu" + std::to_string(processor) + "/cache/index" +
                       std::to_string(index) + "/size");
    std::size_t kilobytes = 0;  // "32768K"
    if (!(file >> kilobytes)) return largest;
    largest = std::max(largest, kilobytes << 10);
  }
}

std::string to_bits(const Processors& processors) {
  std::string bits(processors.empty() ? 0 : static_cast<std::size_t>(processors.back()) / 8 + 1, '\0');
  for (const int processor : processors) bits[processor / 8] |= static_cast<char>(1 << processor % 8);
  return bits;
}

Processors from_bits(std::string_view bits) {
  Processors processors;
  for (int processor = 0; processor < static_cast<int>(bits.size()) * 8; ++processor)
    if (bits[processor / 8] >> processor % 8 & 1) processors.push_back(processor);
  return processors;
}

bool must_share(const std::vector<Processors>& ranks) {
  if (ranks.size() < 2) return false;
  return !Seating(ranks).seat_all();
}

}  // namespace tutti::internal::topology
