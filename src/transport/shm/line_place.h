// Where a lane's lines lie: the writer goes round the first kRow of them while messages are long, and round all while
// they are short. The last line of the first row says which, so that the reader follows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "transport/shm/lane.h"

namespace tutti::internal::shm {

inline constexpr std::uint64_t kGoesOn = std::uint64_t{1} << 63;  // of kind_and_total: the next line is not the first
inline bool goes_on(const Line& line) { return (line.kind_and_total.load(std::memory_order_relaxed) & kGoesOn) != 0; }

class LinePlace {
 public:
  Line& in(Lane& lane) const {
    return *reinterpret_cast<Line*>(reinterpret_cast<std::byte*>(static_cast<Line*>(lane.lines)) + offset_);
  }
  // On to the line behind this one.
  void pass(const Line& line) {
    if (!advance()) turn(goes_on(line));
  }
  // On to the next line. False: a row ends here, and turn() has to follow.
  bool advance() {
    offset_ += sizeof(Line);
    return offset_ != end_;
  }
  // To the lines behind the first row if that has ended and goes on, else to the first line. How many lines the round
  // has had; 0: it goes on.
  std::uint32_t turn(bool goes_on) {
    if (goes_on && end_ == kRow * sizeof(Line)) {
      end_ = kLines * sizeof(Line);
      return 0;
    }
    offset_ = 0;
    return std::exchange(end_, kRow * sizeof(Line)) / sizeof(Line);
  }

 private:
  // Bytes from the first line on, which costs no multiplication; `end_`: of the row.
  std::uint32_t offset_ = 0, end_ = kRow * sizeof(Line);
};

// The writer's.
class NextLine {
 public:
  Line& in(Lane& lane) const { return place_.in(lane); }
  // Whether the reader has acknowledged what lay there, where it has not acknowledged the last `unread` lines.
  bool is_free(std::uint32_t unread) const { return unread < lines_since_; }
  // On to the next line. What to add to kind_and_total of this one.
  std::uint64_t advance(LineKind kind) { return place_.advance() ? 0 : turn(kind); }

 private:
  std::uint64_t turn(LineKind kind) {
    const bool goes_on = kind == LineKind::inside || rounds_left_ == 0;
    rounds_left_ = goes_on ? kRoundsInFirstRow : rounds_left_ - 1;
    const std::uint32_t round = place_.turn(goes_on);
    lines_since_ = round > 0 ? round : kLines;
    return goes_on ? kGoesOn : 0;
  }

  // After so many rounds within the first row the writer goes through all lines, whatever the messages are: else, once
  // the numbers of lines have gone round, old lines behind the row would look new. It does so in the first round too:
  // memory that nobody has written looks like the line of number 2^32 - 1.
  static constexpr std::uint32_t kRoundsInFirstRow = 1u << 24;
  static_assert((kRoundsInFirstRow + 1) * std::uint64_t{kRow} + kLines < std::uint64_t{1} << 32);

  LinePlace place_;
  // The writer was at this place so many lines ago, or longer: in the first row a round ago, behind it kLines ago.
  std::uint32_t lines_since_ = kRow;
  std::uint32_t rounds_left_ = 0;  // that may still be within the first row
};

}  // namespace tutti::internal::shm
