#include "trainer/cuda/gpu.h"

#include <algorithm>
#include <cstdlib>
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

// Pinned host memory, by way of which everything goes.
class Stage {
 public:
  static constexpr std::size_t kBytes = 1 << 20;
  static constexpr std::size_t kCount = kBytes / sizeof(double);
  explicit Stage(int device) : pinned_(device, own_.get(), kBytes) {}
  std::byte* data() const { return own_.get(); }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  static std::byte* allocate() {
    void* const memory = std::aligned_alloc(4096, kBytes);
    if (memory == nullptr) throw Error(ErrorCode::system, "no memory for copies from and to the GPU");
    return static_cast<std::byte*>(memory);
  }
  std::unique_ptr<std::byte, Free> own_{allocate()};
  cuda::Pinned pinned_;
};

// Arrays of one size. `free` has room for all, so that a release needs no memory.
struct Bin {
  std::vector<std::unique_ptr<cuda::DeviceMemory>> all;
  std::vector<double*> free;
};

class Gpu final : public Device {
 public:
  explicit Gpu(int index) : index_(index), here_(index), stage_(index), stream_(index), done_(index) {}
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
      bin.all.push_back(std::make_unique<cuda::DeviceMemory>(index_, count * sizeof(double)));
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
    for (; !from.empty(); to += Stage::kCount) {
      const auto part = from.first(std::min(from.size(), Stage::kCount));
      finish();  // the stage is free
      std::memcpy(stage_.data(), part.data(), part.size_bytes());
      cuda::copy(reinterpret_cast<std::byte*>(to), stage_.data(), part.size_bytes(), stream_.get());
      from = from.subspan(part.size());
    }
  }
  void read(std::span<double> to, const double* from) override {
    for (; !to.empty(); from += Stage::kCount) {
      const auto part = to.first(std::min(to.size(), Stage::kCount));
      cuda::copy(stage_.data(), reinterpret_cast<const std::byte*>(from), part.size_bytes(), stream_.get());
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
  cuda::OnDevice here_;
  Stage stage_;
  std::map<std::size_t, Bin> bins_;  // by the number of elements
  cuda::OwnStream stream_;
  cuda::Event done_;
};

}  // namespace

std::unique_ptr<Device> make_gpu(int index) { return std::make_unique<Gpu>(index); }

}  // namespace tutti::trainer
