// The loops of a collective whose ranks have buffers of their own, which no other rank can reach: what others need is
// copied into shared memory piece by piece, and copied or combined out of it. The pieces stay in the caches. Each round
// is timed with plain stores into shared memory; with non-temporal ones, which are quicker between cores that share no
// cache; with string copies; and, where two processes give pieces to each other, so that each waits for no room, since
// it writes where it has just read. The quickest of the four counts.
#include <emmintrin.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <vector>

#include "bench/limit.h"
#include "bench/limit_add.h"
#include "memory/copy.h"
#include "memory/string_copy.h"
#include "tutti/error.h"
#include "types/collective.h"

namespace tutti::internal::tools {

namespace {

constexpr std::size_t kLongPieces = 8;            // of the longest, that a process with a processor may be ahead
constexpr std::size_t kMostSlots = 64;            // so that what short pieces touch fits the first-level cache
constexpr std::size_t kOneRoundBytes = 16 << 10;  // up to here each process combines the whole message
constexpr std::size_t kNeverPastCacheBytes = 2 << 10;
constexpr std::size_t kGrain = 8;  // floats
constexpr std::size_t kStringBytes = 16 << 10;

// Pieces of all processes together fit a second-level cache. Processes that take turns on their processors have long
// ones: each piece that is awaited is a turn. Then two of each are quicker than one only while they all stay in the
// caches. 8 ranks on 2 cores, us: all_reduce of 128 KiB in short pieces 75, in long ones 70, two of each 53; 512 KiB
// 299, 180 and 197; all_gather of 1 MiB by 4 ranks 113, 101 and 79; of 2 MiB 238, 167 and 187.
constexpr std::size_t kPiecesBytes = 256 << 10, kStagedBytes = (2 << 20) + (64 << 10), kMappedBytes = 256 << 20;
std::size_t floats_of_piece(std::size_t ranks, bool are_crowded) {
  const std::size_t most = std::min<std::size_t>(kPiecesBytes + (4 << 10), kMappedBytes / (2 * ranks * (ranks + 1)));
  const std::size_t bytes = std::max<std::size_t>(4 << 10, are_crowded ? most : kPiecesBytes / ranks);
  return bytes / (kGrain * sizeof(float)) * kGrain;
}

struct alignas(128) Progress {  // of a process, in pieces since it began
  std::atomic<std::uint64_t> given;
  alignas(128) std::atomic<std::uint64_t> made;
  alignas(128) std::atomic<std::uint64_t> taken;
  double us;
};

enum class Way : std::uint8_t { plain, past_cache, by_string, exchanging };  // of writing to shared memory

struct Piece {
  std::size_t begin, count;  // in floats
};

class OwnLoops final : public LimitLoops {
 public:
  OwnLoops(Collective collective, int ranks, std::size_t max_bytes)
      : holds_(collective, ranks),
        ranks_(static_cast<std::size_t>(ranks)),
        floats_(max_bytes / sizeof(float) + kGrain * ranks_ + 1),
        are_crowded_(ranks > topology::usable_processors()),
        piece_(floats_of_piece(ranks_, are_crowded_)),
        long_pieces_(are_crowded_ ? 2 : kLongPieces),
        stage_bytes_(long_pieces_ * (ranks_ + 1) * piece_ * sizeof(float)),
        mapped_(ranks_ * (stage_bytes_ + sizeof(Progress))) {
    void* base = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) throw Error(ErrorCode::system, "measuring the limit: no memory for what ranks share");
    base_ = static_cast<std::byte*>(base);
    progress_ = reinterpret_cast<Progress*>(base_ + ranks_ * stage_bytes_);
  }
  ~OwnLoops() override { munmap(base_, mapped_); }

  int processes() const override { return static_cast<int>(ranks_); }
  bool measures(std::size_t bytes) const override { return bytes > 0; }
  std::size_t calls_for(std::size_t bytes) const override {
    return calls_to_time(static_cast<double>(bytes) * static_cast<double>(ranks_), processes()) / 2 + 1;
  }

  double round(int me, std::size_t bytes, std::size_t calls) override {
    me_ = static_cast<std::size_t>(me);
    cut(bytes);
    if (in_.empty()) {
      in_.assign(floats_, 1);
      out_.assign(floats_, 0);
    }
    double least = std::numeric_limits<double>::max();
    for (const Way way : {Way::plain, Way::past_cache, Way::by_string, Way::exchanging}) {
      if (way == Way::past_cache && bytes <= kNeverPastCacheBytes) continue;
      if (way == Way::by_string && !has_string_pieces()) continue;
      if (way == Way::exchanging && !exchanges()) continue;
      way_ = way;
      all_here();
      const double start = now_us();
      for (std::size_t call = 0; call < calls; ++call) one_call(bytes);
      progress_[me_].us = (now_us() - start) / static_cast<double>(calls);
      all_here();
      double slowest = 0;
      for (std::size_t r = 0; r < ranks_; ++r) slowest = std::max(slowest, progress_[r].us);
      all_here();
      least = std::min(least, slowest);
    }
    return least;
  }

 private:
  float* given(std::size_t rank, std::uint64_t piece, std::size_t place) const {
    return stage(rank, piece) + (slot(piece) * ranks_ + place) * length_;
  }
  float* made(std::size_t rank, std::uint64_t piece) const {
    return stage(rank, piece) + long_pieces_ * ranks_ * piece_ + slot(piece) * length_;
  }
  // Where two processes exchange, piece p is written where the writer has read the other's piece p - 2, as it has done
  // before it writes piece p. What goes to a place of its own has four pieces' room: the other has read piece p - 4
  // before it gave its piece p - 2.
  float* stage(std::size_t rank, std::uint64_t piece) const {
    const std::size_t whose = way_ == Way::exchanging ? rank ^ (piece / 2 % 2) : rank;
    return reinterpret_cast<float*>(base_ + whose * stage_bytes_);
  }
  std::size_t slot(std::uint64_t piece) const { return piece % (way_ == Way::exchanging ? 2 : slots_); }
  bool exchanges() const {
    return ranks_ == 2 && (holds_.traits.combines() ? !holds_.traits.has_root() : gives(0) && gives(1));
  }
  bool gives(int rank) const {
    for (int row = 0; row < holds_.rows(); ++row)
      if (holds_.origin(row) == rank && holds_.gets(1 - rank, row)) return true;
    return false;
  }
  bool has_string_pieces() const { return string_copies_are_quick_ && length_ * sizeof(float) >= kStringBytes; }

  // Until all processes have reached `count`.
  void await(std::atomic<std::uint64_t> Progress::*what, std::uint64_t count) const {
    for (std::size_t r = 0; r < ranks_; ++r)
      while ((progress_[r].*what).load(std::memory_order_acquire) < count && r != me_)
        are_crowded_ ? void(sched_yield()) : _mm_pause();
  }
  void await_room(std::atomic<std::uint64_t> Progress::*what, std::uint64_t piece) const {
    if (way_ != Way::exchanging && piece >= slots_) await(what, piece - slots_ + 1);
  }
  void reach(std::atomic<std::uint64_t> Progress::*what, std::uint64_t count) const {
    (progress_[me_].*what).store(count, std::memory_order_release);
  }
  void all_here() {
    for (const auto what : {&Progress::given, &Progress::made, &Progress::taken}) reach(what, pieces_ + 1);
    await(&Progress::taken, ++pieces_);
  }

  void put(float* to, const float* from, std::size_t count) const { copy(to, from, count, way_); }
  void take(float* to, const float* from, std::size_t count) const {
    copy(to, from, count, way_ == Way::exchanging ? way_ : Way::plain);
  }
  void copy_own(float* to, const float* from, std::size_t count) const {
    copy(to, from, count, way_ == Way::past_cache ? Way::plain : way_);
  }
  void copy(float* to, const float* from, std::size_t count, Way way) const {
    auto* const target = reinterpret_cast<std::byte*>(to);
    const auto* const source = reinterpret_cast<const std::byte*>(from);
    if (way == Way::by_string || (way == Way::exchanging && has_string_pieces()))
      return copy_by_string(target, source, count * sizeof(float));
    copy_bytes(target, source, count * sizeof(float), way == Way::past_cache);
  }

  // Short pieces have more slots: a line that another process has read is quicker to write to once it has left the
  // second-level cache there.
  void cut(std::size_t bytes) {
    const std::size_t floats = bytes / sizeof(float) + kGrain;
    const std::size_t rows =
        holds_.traits.combines() ? ranks_ : static_cast<std::size_t>(holds_.traits.buffer_rows(processes()));
    const std::size_t longest = (floats / (is_one_round(bytes) ? 1 : rows) / kGrain + 2) * kGrain;
    length_ = std::min(piece_, longest);
    slots_ = std::min(long_pieces_ * piece_ / length_, kMostSlots);
    // One is given while the one before is taken.
    const std::size_t fit = kStagedBytes / (staged(bytes) * length_ * sizeof(float)), least = longest > piece_ ? 2 : 1;
    if (are_crowded_) slots_ = std::clamp(fit, least, slots_);
  }
  // Pieces of a slot, of all processes.
  std::size_t staged(std::size_t bytes) const {
    if (holds_.traits.combines()) return is_one_round(bytes) ? ranks_ : ranks_ * ranks_;
    const std::size_t rows = static_cast<std::size_t>(holds_.input(0).count);
    return holds_.traits.input == Held::at_root ? rows : ranks_ * rows;
  }

  void one_call(std::size_t bytes) {
    const std::size_t grains = (bytes + kGrain * sizeof(float) - 1) / (kGrain * sizeof(float));
    if (!holds_.traits.combines()) {
      const std::size_t row = sizeof(float) * static_cast<std::size_t>(holds_.traits.buffer_rows(processes()));
      return move((bytes + row - 1) / row);
    }
    is_one_round(bytes) ? combine_all(grains * kGrain) : combine(grains);
  }
  bool is_one_round(std::size_t bytes) const {
    return holds_.traits.combines() && holds_.traits.output == Held::all && bytes <= kOneRoundBytes;
  }

  Piece slice(std::size_t grains, std::size_t rank, std::uint64_t number) const {
    const std::size_t begin = grains * rank / ranks_ * kGrain, end = grains * (rank + 1) / ranks_ * kGrain;
    const std::size_t at = std::min<std::size_t>(end, begin + number * length_);
    return {at, std::min(length_, end - at)};
  }

  // Each process combines one slice of the message. Three pieces are on their way: one is given while the one before is
  // combined, and the one before that taken.
  void combine(std::size_t grains) {
    const std::size_t longest = (grains + ranks_ - 1) / ranks_ * kGrain;
    const std::uint64_t count = (longest + length_ - 1) / length_, first = pieces_;
    const bool takes = holds_.traits.output == Held::all || (holds_.traits.output == Held::at_root && me_ == 0);
    std::vector<const float*> sources(ranks_);
    for (std::uint64_t i = 0; i < count + 2; ++i) {
      if (i < count) {
        await_room(&Progress::made, first + i);
        for (std::size_t r = 0; r < ranks_; ++r)
          if (const Piece piece = slice(grains, r, i); r != me_ && piece.count > 0)
            put(given(me_, first + i, r), in_.data() + piece.begin, piece.count);
        reach(&Progress::given, first + i + 1);
      }
      if (i >= 1 && i <= count) {
        const std::uint64_t number = first + i - 1;
        const Piece piece = slice(grains, me_, i - 1);
        await(&Progress::given, number + 1);
        await_room(&Progress::taken, number);
        for (std::size_t r = 0; r < ranks_; ++r)
          sources[r] = r == me_ ? in_.data() + piece.begin : given(r, number, me_);
        float* const here = out_.data() + piece.begin;
        float* const targets[] = {here, made(me_, number)};
        const bool gives = holds_.traits.output != Held::own;
        const bool makes_both = gives && (way_ == Way::plain || way_ == Way::exchanging);
        add_along_tree(sources.data(), processes(), targets, makes_both ? 2 : 1, piece.count);
        if (gives && !makes_both) put(targets[1], here, piece.count);
        reach(&Progress::made, number + 1);
      }
      if (i >= 2) {
        const std::uint64_t number = first + i - 2;
        if (takes) await(&Progress::made, number + 1);
        for (std::size_t next = 1; takes && next < ranks_; ++next) {
          const std::size_t r = (me_ + next) % ranks_;
          if (const Piece piece = slice(grains, r, i - 2); piece.count > 0)
            take(out_.data() + piece.begin, made(r, number), piece.count);
        }
        reach(&Progress::taken, number + 1);
      }
    }
    pieces_ += count;
  }

  // Each process combines the whole message.
  void combine_all(std::size_t floats) {
    std::vector<const float*> sources(ranks_);
    for (std::size_t at = 0; at < floats; at += length_, ++pieces_) {
      const std::size_t count = std::min(length_, floats - at);
      await_room(&Progress::made, pieces_);
      put(given(me_, pieces_, 0), in_.data() + at, count);
      reach(&Progress::given, pieces_ + 1);
      await(&Progress::given, pieces_ + 1);
      for (std::size_t r = 0; r < ranks_; ++r) sources[r] = r == me_ ? in_.data() + at : given(r, pieces_, 0);
      float* const targets[] = {out_.data() + at};
      add_along_tree(sources.data(), processes(), targets, 1, count);
      reach(&Progress::made, pieces_ + 1);
      reach(&Progress::taken, pieces_ + 1);
    }
  }

  // A row that its own rank gets is copied at once; one that others get is given to all of them together.
  void move(std::size_t row_floats) {
    const int me = static_cast<int>(me_);
    const std::uint64_t count = (row_floats + length_ - 1) / length_, first = pieces_;
    const int first_row = holds_.rows() / processes() * (me + 1);  // of the next process, so that all begin elsewhere
    const bool copies_own = holds_.traits.collective != Collective::broadcast;  // its root has the message already
    for (std::uint64_t i = 0; i < count + 1; ++i) {
      for (int row = 0; i < count && row < holds_.rows(); ++row) {
        if (holds_.origin(row) != me) continue;
        const std::size_t at = i * length_, length = std::min(length_, row_floats - at);
        const auto place = static_cast<std::size_t>(holds_.input(me).index(row));
        const float* const from = in_.data() + place * row_floats + at;
        if (holds_.gets(me, row) && copies_own)
          copy_own(out_.data() + static_cast<std::size_t>(holds_.output(me).index(row)) * row_floats + at, from,
                   length);
        if (!is_for_others(row)) continue;
        await_room(&Progress::taken, first + i);
        put(given(me_, first + i, place), from, length);
      }
      if (i < count) reach(&Progress::given, first + i + 1);
      for (int next = 0; i >= 1 && next < holds_.rows(); ++next) {
        const int row = (first_row + next) % holds_.rows();
        const int origin = holds_.origin(row);
        if (origin == me || !holds_.gets(me, row)) continue;
        const std::size_t at = (i - 1) * length_, length = std::min(length_, row_floats - at);
        const auto giver = static_cast<std::size_t>(origin);
        await_one(giver, first + i);
        take(out_.data() + static_cast<std::size_t>(holds_.output(me).index(row)) * row_floats + at,
             given(giver, first + i - 1, static_cast<std::size_t>(holds_.input(origin).index(row))), length);
      }
      if (i >= 1) reach(&Progress::taken, first + i);
    }
    pieces_ += count;
  }
  bool is_for_others(int row) const {
    for (int r = 0; r < processes(); ++r)
      if (r != static_cast<int>(me_) && holds_.gets(r, row)) return true;
    return false;
  }
  void await_one(std::size_t rank, std::uint64_t count) const {
    while (progress_[rank].given.load(std::memory_order_acquire) < count)
      are_crowded_ ? void(sched_yield()) : _mm_pause();
  }

  // Of the process that made this: those that it forks must agree.
  const bool string_copies_are_quick_ = copies_by_string(kStringBytes);
  const Distribution holds_;
  const std::size_t ranks_, floats_;
  const bool are_crowded_;  // they are more than the processors
  // stage_bytes_: of a process, which gives a piece to each of the others, and makes one
  const std::size_t piece_, long_pieces_, stage_bytes_, mapped_;
  std::byte* base_;
  Progress* progress_;
  // Of this process:
  std::size_t me_ = 0;
  std::size_t length_ = 0, slots_ = 0;  // of the pieces of this size's calls, in floats; and how many there are
  Way way_ = Way::plain;
  std::uint64_t pieces_ = 0;
  std::vector<float> in_, out_;
};

}  // namespace

std::unique_ptr<LimitLoops> own_loops(Collective collective, int ranks, std::size_t max_bytes) {
  return std::make_unique<OwnLoops>(collective, ranks, max_bytes);
}

}  // namespace tutti::internal::tools
