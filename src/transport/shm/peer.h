// A peer as a rank sees it: its memory, shared and private, the bell that wakes it, and whether it is there.
#pragma once

#include <atomic>
#include <memory>

#include "transport/shm/private_memory.h"
#include "transport/shm/segment.h"

namespace tutti::internal::shm {

struct Peer {
  std::shared_ptr<Segment> segment;
  PrivateMemory memory;
  int bell = -1;    // owned eventfd
  int socket = -1;  // owned: nothing more comes over it; the peer's end closes when it leaves or dies
  std::atomic<bool> gone{false};
  ~Peer();
  void look();  // whether it has gone
  void ring() const;
};

}  // namespace tutti::internal::shm
