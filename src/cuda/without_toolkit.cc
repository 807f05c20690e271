// What there is of this folder where CUDA's toolkit was not, or not wanted.
#include <fmt/format.h>

#include "cuda/device.h"
#include "cuda/reduce.h"
#include "tutti/error.h"

namespace tutti::cuda {
namespace {

constexpr const char* kReason =
    "this tutti was built without CUDA; build it where nvcc is found, with TUTTI_CUDA=ON to be told why it is not";

}  // namespace

std::string Devices::why_none() const { return kReason; }

Devices find_devices() { return {{}, {kReason}}; }

void reduce(const ReduceSpec&, std::span<const ReduceSource>, std::span<const ReduceTarget>, std::size_t, Stream) {
  throw Error(ErrorCode::unsupported, fmt::format("reduce: {}", kReason));
}

}  // namespace tutti::cuda
