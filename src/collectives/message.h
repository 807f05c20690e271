#pragma once

namespace tutti::internal {

// All that an algorithm may depend on besides the layout.
struct Message {
  int root = 0;    // broadcast
  int chunks = 1;  // pieces that a slice is pipelined in, where the algorithm pipelines; others use 1
};

}  // namespace tutti::internal
