// A message on its way in the interpreter, and the dice that decide how it moves.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/interpret_memory.h"

namespace tutti::internal {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(splitmix64(seed)) {}
  std::uint64_t draw() { return splitmix64(state_++); }
  bool one_in(std::uint64_t n) { return draw() % n == 0; }
  std::vector<std::size_t> shuffled(std::size_t size);  // [0, size)

 private:
  std::uint64_t state_;
};

// Moves element by element, in any order, from the sender's memory to where the receiver wants it; or into a buffer of
// the transport and on from there, and then the sender's memory is given back before the receiver takes the message.
struct Transfer {
  Region from, to;
  std::vector<Element*> source, target;
  bool sent = false;
  bool claimed = false;  // by a receive, which posts `target`, or by a reduce, which reads content()
  bool posted = false;
  bool buffered = false;
  std::vector<Element> buffer;
  bool moving = false;
  std::vector<std::size_t> left;  // while moving: the elements still to move, in the order they will
  bool given_back = false;        // to the sender
  bool arrived = false;           // wholly in `target`, or consumed by a reduce
  std::uint64_t priority = 0;

  bool can_move() const { return sent && ((buffered && !given_back) || (posted && !arrived)); }
  bool can_be_consumed() const { return sent && (!buffered || given_back); }
  const Element& content(std::size_t i) const { return buffered ? buffer[i] : *source[i]; }
  void move(Dice& dice);  // one element, or notices that all are there; throws RunError
};

}  // namespace tutti::internal
