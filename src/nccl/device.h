// Which GPU a rank has, and memory: of a GPU where this process can use one, else of the host. Nothing here needs a
// driver: where there is none, there is no GPU.
#pragma once

#include <cstddef>

namespace tutti::nccl {

// The calling thread's, as cudaGetDevice() has it; -1 where there is none.
int current_device();

// bytes[0, size), of the current GPU, or of the host and then aligned to 4096; at least one byte. nullptr: there is no
// memory left.
void* allocate(std::size_t size);

// Frees memory of allocate(), whichever it is; nothing, for nullptr. Whether CUDA has freed it, if it is CUDA's.
bool release(void* memory);

}  // namespace tutti::nccl
