// Calls over memory of every kind, and what must come out of them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "cuda/device.h"
#include "cuda/many_queues.h"
#include "runtime/device_buffer.h"
#include "runtime/ranks.h"
#include "runtime/shapes.h"

namespace tutti::internal {

class OnDevices : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const cuda::Devices found = cuda::find_devices();
    if (found.usable.empty()) GTEST_SKIP() << found.why_none();
  }
};

// A rank's buffers for one call, with its input in them, and what must come out.
class Buffers {
 public:
  Buffers(const Shape& shape, int rank, int ranks, MemoryKind in, MemoryKind out, bool in_place)
      : in_place_(in_place), out_bytes_(output_elems(shape, ranks, rank) * size_of(shape.dtype)) {
    const auto input = random_input(rank, input_elems(shape, ranks, rank), shape.dtype);
    if (!in_place_) {
      first_.emplace(in, input);
      second_.emplace(out, out_bytes_);
      return;
    }
    const std::ptrdiff_t shift = in_place_shift(shape, rank);
    in_at_ = static_cast<std::size_t>(std::max<std::ptrdiff_t>(-shift, 0));
    out_at_ = static_cast<std::size_t>(std::max<std::ptrdiff_t>(shift, 0));
    std::vector<std::byte> whole(std::max(in_at_ + input.size(), out_at_ + out_bytes_));
    if (!input.empty()) std::memcpy(&whole[in_at_], input.data(), input.size());
    first_.emplace(in, whole);
  }
  std::byte* in() const { return first_->data() + in_at_; }
  std::byte* out() const { return in_place_ ? first_->data() + out_at_ : second_->data(); }
  std::vector<std::byte> result() const {
    const auto whole = in_place_ ? first_->read() : second_->read();
    const auto first = whole.begin() + static_cast<std::ptrdiff_t>(out_at_);
    return {first, first + static_cast<std::ptrdiff_t>(out_bytes_)};
  }

 private:
  bool in_place_;
  std::size_t out_bytes_, in_at_ = 0, out_at_ = 0;
  std::optional<DeviceBuffer> first_, second_;
};

}  // namespace tutti::internal
