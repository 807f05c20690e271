// The loops of a collective that only moves bytes, by ranks that read each other's private memory, or also write it:
// one copy, which the system makes (process_vm_readv, process_vm_writev).
#include <emmintrin.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "bench/limit.h"
#include "memory/copy.h"
#include "tutti/error.h"
#include "types/collective.h"

namespace tutti::internal::tools {

namespace {

struct alignas(128) Reader {  // a process
  std::atomic<std::uint64_t> epoch;
  pid_t process;
  void *input, *output;
  double us;
};

class ReadLoops final : public LimitLoops {
 public:
  ReadLoops(Collective collective, int ranks, std::size_t max_bytes)
      : holds_(collective, ranks),
        ranks_(ranks),
        bytes_(max_bytes + static_cast<std::size_t>(holds_.traits.buffer_rows(ranks))) {
    const std::size_t bytes = sizeof(Reader) * static_cast<std::size_t>(ranks);
    void* const shared = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) throw Error(ErrorCode::system, "measuring the limit: no memory for what ranks share");
    all_ = static_cast<Reader*>(shared);
  }
  ~ReadLoops() override { munmap(all_, sizeof(Reader) * static_cast<std::size_t>(ranks_)); }

  int processes() const override { return ranks_; }
  bool measures(std::size_t bytes) const override { return bytes > 0; }
  std::size_t calls_for(std::size_t bytes) const override {
    return calls_to_time(static_cast<double>(bytes) * ranks_, ranks_) / 2 + 1;
  }

  double round(int me, std::size_t bytes, std::size_t calls) override {
    if (in_.empty()) begin(me);
    all_here(me);
    const double by_reads = mean_us(me, bytes, calls, false);
    return has_halves_ ? std::min(by_reads, mean_us(me, bytes, calls, true)) : by_reads;
  }

 private:
  double mean_us(int me, std::size_t bytes, std::size_t calls, bool halves) {
    all_here(me);
    bool can_copy = true;
    const double start = now_us();
    for (std::size_t call = 0; call < calls; ++call) can_copy &= one_call(me, bytes, halves);
    const double us = (now_us() - start) / static_cast<double>(calls);
    all_[me].us = can_copy ? us : std::numeric_limits<double>::infinity();
    all_here(me);
    double slowest = 0;
    for (int r = 0; r < ranks_; ++r) slowest = std::max(slowest, all_[r].us);
    all_here(me);
    return slowest;
  }

  void begin(int me) {
    in_.assign(bytes_, std::byte{1});
    out_.assign(bytes_, std::byte{0});
    all_[me].process = getpid();
    all_[me].input = in_.data();
    all_[me].output = out_.data();
  }

  using Copy = ssize_t(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long);
  bool copy_by(Copy& copy, int rank, std::byte* here, void* there, std::size_t bytes) {
    bool can_copy = true;
    for (std::size_t done = 0, most = 1 << 30; done < bytes; done += std::min(most, bytes - done)) {
      const std::size_t now = std::min(most, bytes - done);
      const iovec mine{here + done, now}, other{static_cast<std::byte*>(there) + done, now};
      can_copy &= copy(all_[rank].process, &mine, 1, &other, 1, 0) == static_cast<ssize_t>(now);
    }
    return can_copy;
  }

  // In a buffer that has the rows `held`.
  static std::byte* row_of(void* buffer, const RowRange& held, int row, std::size_t row_bytes) {
    return static_cast<std::byte*>(buffer) + static_cast<std::size_t>(held.index(row)) * row_bytes;
  }

  // The second half of a row of this process to the other one, if that gets it.
  bool write_half(int me, int row, std::size_t row_bytes) {
    const int other = 1 - me;
    if (!holds_.gets(other, row)) return true;
    const std::size_t read = row_bytes / 2;
    return copy_by(process_vm_writev, other, row_of(all_[me].input, holds_.input(me), row, row_bytes) + read,
                   row_of(all_[other].output, holds_.output(other), row, row_bytes) + read, row_bytes - read);
  }

  void all_here(int me) {
    all_[me].epoch.store(++epoch_, std::memory_order_release);
    for (int r = 0; r < ranks_; ++r)
      while (all_[r].epoch.load(std::memory_order_acquire) < epoch_) are_crowded_ ? void(sched_yield()) : _mm_pause();
  }

  // Each process takes the rows that it is to get, from the next process on, so that all begin elsewhere; or the first
  // half of each, and then writes the second half of its own to the one that gets it.
  bool one_call(int me, std::size_t bytes, bool halves) {
    const auto of_buffer = static_cast<std::size_t>(holds_.traits.buffer_rows(ranks_));
    const std::size_t row_bytes = (bytes + of_buffer - 1) / of_buffer;
    const int rows = holds_.rows(), first = rows / ranks_ * (me + 1);
    all_here(me);
    bool can_copy = true;
    for (int next = 0; next < rows; ++next) {
      const int row = (first + next) % rows, from = holds_.origin(row);
      if (halves && from == me) can_copy &= write_half(me, row, row_bytes);
      if (!holds_.gets(me, row)) continue;
      std::byte* const to = row_of(out_.data(), holds_.output(me), row, row_bytes);
      std::byte* const there = row_of(all_[from].input, holds_.input(from), row, row_bytes);
      if (from != me)
        can_copy &= copy_by(process_vm_readv, from, to, there, halves ? row_bytes / 2 : row_bytes);
      else if (holds_.traits.collective != Collective::broadcast)  // its root has the message already
        copy_bytes(to, there, row_bytes);
    }
    all_here(me);
    return can_copy;
  }

  const Distribution holds_;
  const int ranks_;
  const bool has_halves_ = copies_halves(holds_.traits.collective, ranks_);
  const std::size_t bytes_;
  const bool are_crowded_ = ranks_ > topology::usable_processors();
  Reader* all_;
  // Of this process:
  std::vector<std::byte> in_, out_;
  std::uint64_t epoch_ = 0;
};

class QuickerLoops final : public LimitLoops {
 public:
  QuickerLoops(std::unique_ptr<LimitLoops> first, std::unique_ptr<LimitLoops> second)
      : first_(std::move(first)), second_(std::move(second)) {}

  int processes() const override { return first_->processes(); }
  bool measures(std::size_t bytes) const override { return first_->measures(bytes) && second_->measures(bytes); }
  std::size_t calls_for(std::size_t bytes) const override { return first_->calls_for(bytes); }
  double round(int me, std::size_t bytes, std::size_t calls) override {
    const double us = first_->round(me, bytes, calls);
    if (bytes == slow_at_) return us;
    const double other_us = second_->round(me, bytes, calls);
    if (other_us > 2 * us) slow_at_ = bytes;  // in all processes, as a round is that of the slowest
    return std::min(us, other_us);
  }

 private:
  const std::unique_ptr<LimitLoops> first_, second_;
  std::size_t slow_at_ = 0;  // a size at which the second is not worth its time
};

}  // namespace

std::unique_ptr<LimitLoops> quicker_of(std::unique_ptr<LimitLoops> first, std::unique_ptr<LimitLoops> second) {
  return std::make_unique<QuickerLoops>(std::move(first), std::move(second));
}

std::unique_ptr<LimitLoops> read_loops(Collective collective, int ranks, std::size_t max_bytes) {
  return std::make_unique<ReadLoops>(collective, ranks, max_bytes);
}

bool copies_halves(Collective collective, int ranks) {
  return ranks == 2 && (traits_of(collective).has_root() || collective == Collective::transfer);
}

}  // namespace tutti::internal::tools
