#include "transport/verbs/block.h"

#include <sys/mman.h>

#include "tutti/error.h"

namespace tutti::internal::verbs {

Block::Block(Fabric& fabric) {
  void* const at = ::mmap(nullptr, kBlockBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) throw Error(ErrorCode::system, "no memory for " + std::to_string(kBlockBytes) + " bytes");
  data_ = static_cast<std::byte*>(at);
  try {
    registration_ = fabric.register_memory(data_, kBlockBytes);
  } catch (...) {
    ::munmap(data_, kBlockBytes);
    throw;
  }
}

Block::~Block() {
  registration_.reset();
  ::munmap(data_, kBlockBytes);
}

}  // namespace tutti::internal::verbs
