#pragma once

namespace tutti::internal {

// All that an algorithm may depend on besides the layout.
struct Message {
  int root = 0;    // of a collective that has one
  int chunks = 1;  // pieces that a slice is pipelined in, where the algorithm pipelines; others use 1
  // Of a collective that exchanges rows: the output is the memory of the input. For the catalogue, not for algorithms.
  bool in_place = false;
  // Other ranks of this host can read this rank's input where it lies. Each rank's own affair, as `in_place` is: the
  // messages are the same.
  bool input_is_shared = false;
};

}  // namespace tutti::internal
