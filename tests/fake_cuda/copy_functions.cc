// Of CUDA's runtime library: copies and fills.
#include <cstring>
#include <optional>
#include <vector>

#include "fake_cuda/process.h"

using namespace tutti::internal::fake;

namespace {

// `rows` rows, that begin `stride` bytes apart.
struct Rows {
  const void* data;
  std::size_t stride, row_bytes, rows;

  const std::byte* row(std::size_t i) const { return static_cast<const std::byte*>(data) + i * stride; }
  // Where row i is; looks first where the row before was.
  std::byte* alias_of(std::size_t i, const Reach& reach, const Region*& region) const {
    if (region != nullptr && region->holds(row(i), row_bytes)) return region->alias + (row(i) - region->data);
    return process().regions.alias_of(row(i), row_bytes, reach, &region);
  }
  void check(const Reach& reach) const {
    const Region* region = nullptr;
    for (std::size_t i = 0; i < rows; ++i) alias_of(i, reach, region);
  }
};

bool on_a_device(const void* at) {
  const Region* const region = process().regions.holding(at);
  return region != nullptr && (region->kind == Kind::device || region->kind == Kind::managed);
}
bool on_the_host(const void* at) {
  const Region* const region = process().regions.holding(at);
  return region == nullptr || region->kind != Kind::device;
}

bool is_of_kind(const void* to, const void* from, cudaMemcpyKind kind) {
  switch (kind) {
    case cudaMemcpyDefault: return true;
    case cudaMemcpyHostToHost: return on_the_host(to) && on_the_host(from);
    case cudaMemcpyHostToDevice: return on_a_device(to) && on_the_host(from);
    case cudaMemcpyDeviceToHost: return on_the_host(to) && on_a_device(from);
    default: return on_a_device(to) && on_a_device(from);
  }
}

// What cannot be right is told at once; what is not right any more when the stream gets there, then.
template <class Check>
std::optional<cudaError_t> refused(Stream& stream, const Check& check) {
  try {
    check();
    return {};
  } catch (const Fault& fault) {
    stream.device.fail(fault);
    return fault.error;
  }
}

cudaError_t copy(const Rows& to, const Rows& from, cudaMemcpyKind kind, Stream& stream, const Reach& reach) {
  if (to.row_bytes == 0 || to.rows == 0) return cudaSuccess;
  if (to.rows > 1 && (to.stride < to.row_bytes || from.stride < to.row_bytes)) return cudaErrorInvalidPitchValue;
  const auto check = [=] {
    to.check(reach);
    from.check(reach);
  };
  if (const auto error = refused(stream, check)) return *error;
  if (!is_of_kind(to.data, from.data, kind)) return cudaErrorInvalidMemcpyDirection;
  const cudaError_t error = enqueue(Call::copy, stream, [=] {
    check();  // as a whole: of a copy that fails nothing is done
    const Region *to_region = nullptr, *from_region = nullptr;
    for (std::size_t i = 0; i < to.rows; ++i)
      std::memcpy(to.alias_of(i, reach, to_region), from.alias_of(i, reach, from_region), to.row_bytes);
  });
  // CUDA's reference, "API synchronization behavior": between host memory and host memory it has copied when it
  // returns.
  if (!on_a_device(to.data) && !on_a_device(from.data)) stream.finish();
  return error;
}

cudaError_t fill(void* to, int value, std::size_t bytes, Stream& stream) {
  if (bytes == 0) return cudaSuccess;
  const auto alias = [=] { return process().regions.alias_of(to, bytes, {}); };
  if (const auto error = refused(stream, alias)) return *error;
  return enqueue(Call::copy, stream, [=] { std::memset(alias(), value, bytes); });
}

// From pageable memory: CUDA has read it before it returns, but not necessarily written.
cudaError_t copy_of_bytes(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, Stream& stream) {
  if (!is_of_kind(to, from, kind)) return cudaErrorInvalidMemcpyDirection;
  if (const auto error = refused(stream, [=] { process().regions.alias_of(to, bytes, {}); })) return *error;
  stream.finish();
  const auto* const first = static_cast<const std::byte*>(from);
  return enqueue(Call::copy, stream, [to, kept = std::vector<std::byte>(first, first + bytes)] {
    std::memcpy(process().regions.alias_of(to, kept.size(), {}), kept.data(), kept.size());
  });
}

}  // namespace

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t handle) {
  return cudaMemcpy2DAsync(to, bytes, from, bytes, bytes, 1, kind, handle);
}

cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_stride, const void* from, std::size_t from_stride,
                              std::size_t row_bytes, std::size_t rows, cudaMemcpyKind kind, cudaStream_t handle) {
  return call([&] {
    Stream* const stream = stream_of(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    return copy({to, to_stride, row_bytes, rows}, {from, from_stride, row_bytes, rows}, kind, *stream, {});
  });
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return call([&] {
    if (bytes == 0) return cudaSuccess;
    Stream& stream = current_device().legacy();
    if (stream.device.any_blocking_captures()) return cudaErrorStreamCaptureImplicit;
    const bool from_pageable = process().regions.holding(from) == nullptr;
    if (from_pageable && process().regions.holding(to) != nullptr) return copy_of_bytes(to, from, bytes, kind, stream);
    if (const cudaError_t error = copy({to, bytes, bytes, 1}, {from, bytes, bytes, 1}, kind, stream, {-1, true});
        error != cudaSuccess)
      return error;
    const bool within_devices = !on_the_host(to) && !on_the_host(from);
    const Synchronizing synchronizing;
    if (!within_devices) stream.finish();
    return stream.device.failure();
  });
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t handle) {
  return call([&] {
    Stream* const stream = stream_of(handle);
    return stream == nullptr ? cudaErrorInvalidResourceHandle : fill(to, value, bytes, *stream);
  });
}
// Does not wait, unless it is memory of the host.
cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  return call([&] {
    Stream& stream = current_device().legacy();
    if (const cudaError_t error = fill(to, value, bytes, stream); error != cudaSuccess) return error;
    if (on_the_host(to)) stream.finish();
    return stream.device.failure();
  });
}
