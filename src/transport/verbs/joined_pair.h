// A queue pair that has been joined to the peer's, with both blocks: what the two halves of a channel write through.
#pragma once

#include <cstdint>

#include "transport/verbs/block.h"
#include "transport/verbs/fabric.h"
#include "transport/verbs/layout.h"

namespace tutti::internal::verbs {

struct JoinedPair {
  QueuePair& pair;
  Block& mine;
  Place theirs;                // the peer's block
  std::uint64_t consumed = 0;  // bytes of this end's ring that have been given back
  std::uint64_t told = 0;      // of those, what the peer has been told; every word tells it

  bool write(std::span<const Piece> pieces, Place to, Word kind, bool awaited = false) {
    if (!pair.write({pieces, to, true, make_word(kind, consumed), awaited})) return false;
    told = consumed;
    return true;
  }
  bool owes_credit() const { return consumed - told >= kMaxUntold; }
  Place at(std::size_t offset) const { return {theirs.address + offset, theirs.remote_key}; }
};

}  // namespace tutti::internal::verbs
