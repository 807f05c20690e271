#pragma once

namespace tutti::internal {

// All that an algorithm may depend on besides the layout.
struct Message {
  int root = 0;    // of a collective that has one
  int chunks = 1;  // pieces that a slice is pipelined in, where the algorithm pipelines; others use 1
  // Of a collective that exchanges rows: the output is the memory of the input. For the catalogue, not for algorithms.
  bool in_place = false;
  // What this rank sends to several others (AlgorithmClaims::copied_once) it copies once to where all of them can read
  // it, and sends it from there. Each rank's own affair: the messages are the same.
  bool copies_once = false;
  // Of an algorithm that copies results once: the inputs that this rank sends, each to one other, it copies as well.
  bool copies_inputs = false;
  // Of an algorithm that exchanges pieces: how many a rank may send before it has received as many; 0: all. Each rank's
  // own affair, too.
  int ahead = 0;
};

}  // namespace tutti::internal
