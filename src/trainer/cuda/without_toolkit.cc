// In place of launch.cc and the kernel where CUDA's toolkit was not, or not wanted. Nobody gets here:
// internal::cuda::OnDevice has thrown, and said so.
#include "trainer/cuda/launch.h"
#include "tutti/error.h"

namespace tutti::trainer {

void launch(const Task&, internal::cuda::Stream) {
  throw Error(ErrorCode::unsupported, "this tutti was built without CUDA");
}

}  // namespace tutti::trainer
