// A full memory barrier that other ranks' threads pass too, so that they need no fence of their own at each turn.
#pragma once

namespace tutti::internal::shm {

// The threads of this process take part from now on. False where the kernel does not offer it, or a sandbox forbids it:
// then this rank fences its turns itself.
bool join_barriers();

// Returns once every thread of every rank of this machine has passed a full memory barrier.
void barrier_everywhere();

}  // namespace tutti::internal::shm
