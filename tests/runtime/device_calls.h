// Calls over memory of every kind, and what must come out of them.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "cuda/device.h"
#include "cuda/many_queues.h"
#include "runtime/device_buffer.h"
#include "runtime/ranks.h"

namespace tutti::internal {

class OnDevices : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const cuda::Devices found = cuda::find_devices();
    if (found.usable.empty()) GTEST_SKIP() << found.why_none();
  }
};

struct Shape {
  Collective collective;
  std::size_t count;
  DType dtype;
  Op op;
  int root;
};

// Elements of a rank's input and output.
inline std::size_t input_elems(const Shape& shape, int ranks) {
  return shape.collective == Collective::reduce_scatter ? shape.count * static_cast<std::size_t>(ranks) : shape.count;
}
inline std::size_t output_elems(const Shape& shape, int ranks) {
  return shape.collective == Collective::all_gather ? shape.count * static_cast<std::size_t>(ranks) : shape.count;
}
// Of the output, where the input lies in it, or the other way round.
inline std::size_t own_part(const Shape& shape, int rank) {
  return static_cast<std::size_t>(rank) * shape.count * size_of(shape.dtype);
}

inline void call(Communicator& world, const Shape& shape, std::byte* in, std::byte* out,
                 const CallOptions& options = {}) {
  switch (shape.collective) {
    case Collective::all_reduce: world.all_reduce(in, out, shape.count, shape.dtype, shape.op, options); break;
    case Collective::reduce_scatter: world.reduce_scatter(in, out, shape.count, shape.dtype, shape.op, options); break;
    case Collective::all_gather: world.all_gather(in, out, shape.count, shape.dtype, options); break;
    case Collective::broadcast: world.broadcast(out, shape.count, shape.dtype, shape.root, options); break;
    case Collective::barrier: world.barrier(options); break;
  }
}

// A rank's buffers for one call, with its input in them, and what must come out.
class Buffers {
 public:
  Buffers(const Shape& shape, int rank, int ranks, MemoryKind in, MemoryKind out, bool in_place)
      : shape_(shape), rank_(rank), in_place_(in_place || shape.collective == Collective::broadcast) {
    const auto input = random_input(rank, input_elems(shape, ranks), shape.dtype);
    const std::size_t out_bytes = output_elems(shape, ranks) * size_of(shape.dtype);
    if (in_place_) {
      std::vector<std::byte> whole(std::max(input.size(), out_bytes));
      if (!input.empty())
        std::memcpy(&whole[shape.collective == Collective::all_gather ? own_part(shape, rank) : 0], input.data(),
                    input.size());
      first_.emplace(in, whole);
    } else {
      first_.emplace(in, input);
      second_.emplace(out, out_bytes);
    }
    out_bytes_ = out_bytes;
  }
  std::byte* in() const {
    return first_->data() + (in_place_ && shape_.collective == Collective::all_gather ? own_part(shape_, rank_) : 0);
  }
  std::byte* out() const { return in_place_ ? first_->data() + out_offset() : second_->data(); }
  std::vector<std::byte> result() const {
    auto whole = in_place_ ? first_->read() : second_->read();
    const auto first = whole.begin() + static_cast<std::ptrdiff_t>(in_place_ ? out_offset() : 0);
    return {first, first + static_cast<std::ptrdiff_t>(out_bytes_)};
  }

 private:
  std::size_t out_offset() const {
    return shape_.collective == Collective::reduce_scatter ? own_part(shape_, rank_) : 0;
  }
  Shape shape_;
  int rank_;
  bool in_place_;
  std::size_t out_bytes_;
  std::optional<DeviceBuffer> first_, second_;
};

// What must come out, by rank.
inline std::vector<std::vector<std::byte>> expected(const Shape& shape, int ranks) {
  std::vector<std::vector<std::byte>> results(static_cast<std::size_t>(ranks));
  std::vector<std::vector<std::byte>> inputs;
  for (int r = 0; r < ranks; ++r) inputs.push_back(random_input(r, input_elems(shape, ranks), shape.dtype));
  std::vector<std::byte> whole;
  if (shape.collective == Collective::all_reduce || shape.collective == Collective::reduce_scatter) {
    whole = expected_reduction(ranks, input_elems(shape, ranks), shape.dtype, shape.op);
  } else if (shape.collective == Collective::all_gather) {
    for (const auto& input : inputs) whole.insert(whole.end(), input.begin(), input.end());
  } else {
    whole = inputs[static_cast<std::size_t>(shape.root)];
  }
  for (int r = 0; r < ranks; ++r) {
    auto& result = results[static_cast<std::size_t>(r)];
    if (shape.collective == Collective::reduce_scatter) {
      const auto first = whole.begin() + static_cast<std::ptrdiff_t>(own_part(shape, r));
      result.assign(first, first + static_cast<std::ptrdiff_t>(shape.count * size_of(shape.dtype)));
    } else {
      result = whole;
    }
  }
  return results;
}

inline constexpr Collective kWithBuffers[] = {Collective::all_reduce, Collective::reduce_scatter,
                                              Collective::all_gather, Collective::broadcast};

inline std::string name_of(const Shape& shape, int ranks) {
  return std::string(to_string(shape.collective)) + " of " + std::to_string(shape.count) + " " +
         std::string(to_string(shape.dtype)) + " on " + std::to_string(ranks) + " ranks";
}

}  // namespace tutti::internal
