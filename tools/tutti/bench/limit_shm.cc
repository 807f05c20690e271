// The loops of a collective over shared memory. One source, compiled for each instruction set and chosen at run time,
// at most 8 floats wide: wider vectors gain nothing where memory is what limits.
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "bench/limit.h"
#include "bench/limit_add.h"
#include "memory/targets.h"
#include "tutti/error.h"
#include "types/collective.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/limit_shm.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tutti::internal::tools::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::CappedTag<float, 8>;

// T[lo, hi) of element-wise vectors: split at lo + the largest power of two below hi - lo.
HWY_ATTR hn::Vec<Floats> tree(const float* const* in, int lo, int hi, std::size_t i) {
  if (hi - lo == 1) return hn::LoadU(Floats(), in[lo] + i);
  int m = 1;
  while (m * 2 < hi - lo) m *= 2;
  return hn::Add(tree(in, lo, lo + m, i), tree(in, lo + m, hi, i));
}

// out[0 .. outs)[begin, end) = sum(i). begin and end are multiples of 8.
template <class Sum>
HWY_ATTR HWY_INLINE void store_sums(const Sum& sum, float* const* out, int outs, std::size_t begin, std::size_t end,
                                    bool stream) {
  const Floats d;
  for (std::size_t i = begin; i < end; i += hn::Lanes(d)) {
    const auto value = sum(i);
    for (int r = 0; r < outs; ++r) stream ? hn::Stream(value, d, out[r] + i) : hn::StoreU(value, d, out[r] + i);
  }
  if (stream) hwy::FlushStream();
}

// out[0 .. outs)[begin, end) = the sum of in[0 .. n)[begin, end) along T.
HWY_ATTR HWY_NOINLINE void add_two(const float* const* in, float* const* out, int outs, std::size_t begin,
                                   std::size_t end, bool stream) {
  const auto sum = [in](std::size_t i)
                       HWY_ATTR { return hn::Add(hn::LoadU(Floats(), in[0] + i), hn::LoadU(Floats(), in[1] + i)); };
  store_sums(sum, out, outs, begin, end, stream);
}
HWY_ATTR void add(const float* const* in, int n, float* const* out, int outs, std::size_t begin, std::size_t end,
                  bool stream) {
  if (n == 2) return add_two(in, out, outs, begin, end, stream);
  store_sums([in, n](std::size_t i) HWY_ATTR { return tree(in, 0, n, i); }, out, outs, begin, end, stream);
}

}  // namespace tutti::internal::tools::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::internal::tools {

namespace {

HWY_EXPORT(add);

constexpr std::size_t kBlockFloats = 8, kBlockBytes = kBlockFloats * sizeof(float);

struct alignas(128) Line {
  std::atomic<std::uint64_t> epoch;
  double us;
};

class ShmLoops final : public LimitLoops {
 public:
  ShmLoops(Collective collective, int ranks, std::size_t max_bytes)
      : collective_(collective),
        holds_(collective, ranks),
        ranks_(ranks),
        span_((max_bytes + 4095) / 4096 * 4096),
        mapped_(span_ * 2 * ranks + sizeof(Line) * ranks),
        processors_(topology::usable_processors()) {
    void* base = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
      throw Error(ErrorCode::system, "measuring the limit: no memory for the buffers of all ranks");
    base_ = static_cast<std::byte*>(base);
    lines_ = reinterpret_cast<Line*>(base_ + span_ * 2 * ranks);
    for (int r = 0; r < ranks; ++r) {
      in_.push_back(reinterpret_cast<float*>(base_ + span_ * r));
      out_.push_back(reinterpret_cast<float*>(base_ + span_ * (ranks + r)));
    }
  }
  ~ShmLoops() override { munmap(base_, mapped_); }

  int processes() const override { return ranks_; }
  bool measures(std::size_t bytes) const override { return bytes > 0 || !holds_.traits.has_bytes(); }

  std::size_t calls_for(std::size_t bytes) const override {
    return calls_to_time(static_cast<double>(bytes) * ranks_, ranks_);
  }

  double round(int me, std::size_t bytes, std::size_t calls) override {
    touch(me, bytes);
    // Outputs that do not fit the caches are written past them, if that is quicker.
    streams_ = halves_ = false;
    const double plain = timed(me, bytes, calls);
    if (collective_ == Collective::broadcast && ranks_ == 2) {
      halves_ = true;
      return std::min(plain, timed(me, bytes, calls));
    }
    if (!holds_.traits.combines() || holds_.traits.is_scan() ||
        bytes * 2 * static_cast<std::size_t>(ranks_) <= (3u << 20))
      return plain;
    streams_ = true;
    return std::min(plain, timed(me, bytes, calls));
  }

 private:
  // The slowest process's mean time of a call.
  double timed(int me, std::size_t bytes, std::size_t calls) {
    all_here(me);
    const double start = now_us();
    for (std::size_t call = 0; call < calls; ++call) one_call(me, bytes);
    lines_[me].us = (now_us() - start) / static_cast<double>(calls);
    all_here(me);
    double slowest = 0;
    for (int r = 0; r < ranks_; ++r) slowest = std::max(slowest, lines_[r].us);
    all_here(me);
    return slowest;
  }

  // Pages exist once their owner has written them.
  void touch(int me, std::size_t bytes) {
    for (; touched_ < std::min(span_, bytes + kBlockBytes) / sizeof(float); ++touched_) {
      in_[me][touched_] = static_cast<float>((touched_ + me) % 17);
      out_[me][touched_] = 0;
    }
  }

  void all_here(int me) {
    lines_[me].epoch.store(++epoch_, std::memory_order_release);
    for (int r = 0; r < ranks_; ++r)
      while (lines_[r].epoch.load(std::memory_order_acquire) < epoch_)
        ranks_ > processors_ ? void(sched_yield()) : hwy::Pause();
  }

  void one_call(int me, std::size_t bytes) {
    all_here(me);
    if (!holds_.traits.has_bytes()) return;
    holds_.traits.combines() ? combine(me, bytes) : move(me, bytes);
    all_here(me);
  }

  // Each process makes one part of all ranks' prefixes, one from the other.
  void scan(std::size_t begin, std::size_t end) {
    const bool own = holds_.traits.result == Result::prefix;
    if (own) std::copy(in_[0] + begin, in_[0] + end, out_[0] + begin);
    if (!own && ranks_ > 1) std::copy(in_[0] + begin, in_[0] + end, out_[1] + begin);
    for (int r = own ? 1 : 2; r < ranks_; ++r) {
      const float* const sources[] = {out_[r - 1], in_[own ? r : r - 1]};
      HWY_DYNAMIC_DISPATCH(add)(sources, 2, &out_[r], 1, begin, end, false);
    }
  }

  // Each process combines one part of the message.
  void combine(int me, std::size_t bytes) {
    const std::size_t blocks = (bytes + kBlockBytes - 1) / kBlockBytes;
    const std::size_t begin = blocks * me / ranks_ * kBlockFloats, end = blocks * (me + 1) / ranks_ * kBlockFloats;
    if (holds_.traits.is_scan()) return scan(begin, end);
    const Held held = holds_.traits.output;
    float* const* const out = held == Held::own ? &out_[me] : out_.data();  // the root is process 0
    HWY_DYNAMIC_DISPATCH(add)
    (in_.data(), ranks_, out, held == Held::all ? ranks_ : 1, begin, end, streams_);
  }

  // The root of a broadcast and the one other process copy half of the message each.
  void copy_half(int me, std::size_t bytes) {
    const int root = holds_.origin(0);
    const std::size_t middle = bytes / 2, begin = me == root ? middle : 0, end = me == root ? bytes : middle;
    const std::byte* const in = reinterpret_cast<const std::byte*>(in_[root]);
    std::memcpy(reinterpret_cast<std::byte*>(out_[1 - root]) + begin, in + begin, end - begin);
  }

  // Each process takes the rows that it is to get. Of a broadcast, the root has them.
  void move(int me, std::size_t bytes) {
    if (halves_) return copy_half(me, bytes);
    const std::size_t size = bytes / static_cast<std::size_t>(holds_.traits.buffer_rows(ranks_));
    const auto begin = [&](int row, const RowRange& held) { return static_cast<std::size_t>(held.index(row)) * size; };
    for (int row = 0; row < holds_.rows(); ++row) {
      const int from = holds_.origin(row);
      if (!holds_.gets(me, row) || (collective_ == Collective::broadcast && me == from)) continue;
      const std::byte* const in = reinterpret_cast<const std::byte*>(in_[from]);
      std::byte* const out = reinterpret_cast<std::byte*>(out_[me]);
      std::memcpy(out + begin(row, holds_.output(me)), in + begin(row, holds_.input(from)), size);
    }
  }

  Collective collective_;
  const Distribution holds_;
  int ranks_;
  std::size_t span_, mapped_;
  int processors_;
  std::byte* base_;
  Line* lines_;
  std::vector<float*> in_, out_;
  bool streams_ = false, halves_ = false;
  std::uint64_t epoch_ = 0;  // of this process
  std::size_t touched_ = 0;  // by this process: floats of its input and output
};

}  // namespace

void add_along_tree(const float* const* in, int n, float* const* out, int outs, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(add)(in, n, out, outs, 0, count, false);
}

std::unique_ptr<LimitLoops> shm_loops(Collective collective, int ranks, std::size_t max_bytes) {
  return std::make_unique<ShmLoops>(collective, ranks, max_bytes);
}

}  // namespace tutti::internal::tools
#endif  // HWY_ONCE
