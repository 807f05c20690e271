#include "cuda/links.h"

#include <cuda_runtime_api.h>

#include <algorithm>

#include "cuda/check.h"

namespace tutti::internal::cuda {
namespace {

// 0 where the driver does not say.
int attribute(cudaDeviceP2PAttr which, int from, int to) {
  int value = 0;
  return cudaDeviceGetP2PAttribute(&value, which, from, to) == cudaSuccess ? value : 0;
}

// Both ways: the driver says it of each, and a link that serves but one serves no collective.
Link link_between(int a, int b) {
  const auto least = [&](cudaDeviceP2PAttr which) { return std::min(attribute(which, a, b), attribute(which, b, a)); };
  return {a, b, least(cudaDevP2PAttrAccessSupported) != 0,
          std::max(attribute(cudaDevP2PAttrPerformanceRank, a, b), attribute(cudaDevP2PAttrPerformanceRank, b, a)),
          least(cudaDevP2PAttrNativeAtomicSupported) != 0};
}

}  // namespace

std::vector<Link> links_among(const std::vector<Device>& devices) {
  std::vector<Link> links;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    for (std::size_t k = i + 1; k < devices.size(); ++k)
      links.push_back(link_between(devices[i].index, devices[k].index));
  }
  return links;
}

Versions versions() {
  int driver = 0;
  const bool is_there = cudaDriverGetVersion(&driver) == cudaSuccess && driver != 0;
  return {is_there ? version_text(driver) : "", version_text(CUDART_VERSION)};
}

}  // namespace tutti::internal::cuda
