#include "trainer/cuda/gpu.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <thread>
#include <vector>

#include "cuda/memory.h"
#include "cuda/stream.h"
#include "trainer/cuda/launch.h"
#include "tutti/error.h"

namespace tutti::trainer {
namespace {

constexpr std::size_t kStageCount = 1 << 17;  // elements: 1 MiB

// Arrays of one size. `free` has room for all, so that a release needs no memory.
struct Bin {
  std::vector<std::unique_ptr<internal::cuda::DeviceMemory>> all;
  std::vector<double*> free;
};

class Gpu final : public Device {
 public:
  explicit Gpu(int index)
      : index_(index), here_(index), stage_(index, kStageCount * sizeof(double)), stream_(index), done_(index) {}
  ~Gpu() override {
    try {
      finish();
    } catch (const Error&) {  // nothing runs on a device that has failed
    }
  }

  double* allocate(std::size_t count) override {
    Bin& bin = bins_[count];
    if (bin.free.empty()) {
      bin.free.reserve(bin.all.size() + 1);
      bin.all.push_back(std::make_unique<internal::cuda::DeviceMemory>(index_, count * sizeof(double)));
      return reinterpret_cast<double*>(bin.all.back()->data());
    }
    double* const data = bin.free.back();
    bin.free.pop_back();
    return data;
  }
  // Who gets it next touches it on the same stream, after those that did before.
  void release(double* data, std::size_t count) noexcept override { bins_.find(count)->second.free.push_back(data); }

  void run(const Task& task) override {
    if (task.count > 0) launch(task, stream_.get());
  }

  void write(double* to, std::span<const double> from) override {
    for (; !from.empty(); to += kStageCount) {
      const auto part = from.first(std::min(from.size(), kStageCount));
      finish();  // the stage is free
      std::memcpy(stage_.data(), part.data(), part.size_bytes());
      internal::cuda::copy(reinterpret_cast<std::byte*>(to), stage_.data(), part.size_bytes(), stream_.get());
      from = from.subspan(part.size());
    }
  }
  void read(std::span<double> to, const double* from) override {
    for (; !to.empty(); from += kStageCount) {
      const auto part = to.first(std::min(to.size(), kStageCount));
      internal::cuda::copy(stage_.data(), reinterpret_cast<const std::byte*>(from), part.size_bytes(), stream_.get());
      finish();
      std::memcpy(part.data(), stage_.data(), part.size_bytes());
      to = to.subspan(part.size());
    }
  }

  // Looks, and lets other threads run: a rank's steps are too short to sleep between.
  void finish() override {
    done_.record(stream_.get());
    while (!done_.is_done()) std::this_thread::yield();
  }

 private:
  int index_;
  internal::cuda::OnDevice here_;
  internal::cuda::PinnedMemory stage_;  // by way of which everything goes
  std::map<std::size_t, Bin> bins_;     // by the number of elements
  internal::cuda::OwnStream stream_;
  internal::cuda::Event done_;
};

}  // namespace

std::unique_ptr<Device> make_gpu(int index) { return std::make_unique<Gpu>(index); }

}  // namespace tutti::trainer
