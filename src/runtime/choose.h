// Which algorithm a call uses when the caller does not say: one table over (ranks, hosts, bytes), the same on every
// rank.
#pragma once

#include <cstddef>
#include <span>

#include "tutti/types.h"

namespace tutti::runtime {

// A rule holds when every bound does; the first that holds decides. bytes is the whole message's size.
struct Rule {
  Collective collective;
  int max_ranks;
  bool one_host;  // all ranks share a host
  std::size_t max_bytes;
  Algorithm algorithm;
};

std::span<const Rule> rules();

Algorithm choose(Collective collective, int ranks, int hosts, std::size_t bytes);

// Pieces that a pipelining algorithm cuts a message of `bytes` into.
int chunks_for(Collective collective, Algorithm algorithm, int ranks, std::size_t bytes);

}  // namespace tutti::runtime
