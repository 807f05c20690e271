#include "bench/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "cuda/memory.h"
#include "cuda/stream.h"
#include "tutti/error.h"

namespace tutti::internal::tools {
namespace {

constexpr std::size_t kPage = 4096;

std::size_t whole_pages(std::size_t bytes) { return std::max(kPage, (bytes + kPage - 1) / kPage * kPage); }

}  // namespace

Pages::Pages(std::size_t bytes)
    : bytes_(whole_pages(bytes)), own_(static_cast<std::byte*>(std::aligned_alloc(kPage, bytes_))) {
  if (own_ == nullptr)
    throw Error(ErrorCode::system, fmt::format("no memory for a buffer of {} bytes; use a smaller --max", bytes_));
}
void Pages::Free::operator()(std::byte* memory) const { std::free(memory); }

BenchMemory::BenchMemory(Communicator& world, std::size_t bytes, HostBuffers buffers) {
  if (buffers == HostBuffers::symmetric) {
    symmetric_ = world.allocate(whole_pages(bytes));
    return;
  }
  own_.emplace(bytes);
  if (buffers == HostBuffers::adopted) adopted_ = world.adopt(own_->data(), own_->bytes());
}

struct BenchBuffers::OnGpu {
  OnGpu(int device, std::size_t bytes)
      : here(device),
        first(device, bytes),
        second(device, bytes),
        stage(device, bytes),
        stream(device),
        arrived(device) {}

  void copy(std::byte* to, const std::byte* from, std::size_t size) {
    cuda::copy(to, from, size, stream.get());
    arrived.record(stream.get());
    while (!arrived.is_done()) std::this_thread::yield();
  }

  cuda::OnDevice here;  // or pinning memory would start device 0, too
  cuda::DeviceMemory first, second;
  cuda::PinnedMemory stage;  // for one buffer at a time
  cuda::OwnStream stream;
  cuda::Event arrived;
};

BenchBuffers::BenchBuffers(Communicator& world, std::size_t bytes, HostBuffers buffers, std::optional<int> device)
    : bytes_(whole_pages(bytes)) {
  if (device) {
    gpu_ = std::make_unique<OnGpu>(*device, bytes_);
  } else {
    for (BenchMemory& memory : host_) memory = BenchMemory(world, bytes_, buffers);
  }
}
BenchBuffers::~BenchBuffers() = default;

std::byte* BenchBuffers::data(int which) const {
  if (gpu_ == nullptr) return host_[which].data();
  return (which == 0 ? gpu_->first : gpu_->second).data();
}

std::byte* BenchBuffers::stage(std::byte* at) const { return gpu_ != nullptr ? gpu_->stage.data() : at; }
void BenchBuffers::put(std::byte* at, std::size_t size) {
  if (gpu_ != nullptr) gpu_->copy(at, gpu_->stage.data(), size);
}
const std::byte* BenchBuffers::get(std::byte* at, std::size_t size) {
  if (gpu_ == nullptr) return at;
  gpu_->copy(gpu_->stage.data(), at, size);
  return gpu_->stage.data();
}

}  // namespace tutti::internal::tools
