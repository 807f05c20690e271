#pragma once

namespace tutti::internal {

// All that an algorithm may depend on besides the layout.
struct Message {
  int root = 0;    // of a collective that has one
  int chunks = 1;  // pieces that a slice is pipelined in, where the algorithm pipelines; others use 1
  // Of a collective that exchanges rows: the output is the memory of the input. For the catalogue, not for algorithms.
  bool in_place = false;
  // This rank copies its input once to where all others can read it, and sends it from there. Each rank's own affair:
  // the messages are the same. For algorithms with AlgorithmClaims::may_copy_input.
  bool copies_input = false;
};

}  // namespace tutti::internal
