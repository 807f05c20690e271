#include "runtime/fused.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tutti::internal {
namespace {

std::size_t bytes_of(const std::vector<Fused::Part>& parts) {
  std::size_t bytes = 0;
  for (const Fused::Part& part : parts) bytes += part.bytes;
  return bytes;
}

// Most calls are of one element or two.
inline void copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes == 8) {
    std::memcpy(to, from, 8);
  } else if (bytes == 4) {
    std::memcpy(to, from, 4);
  } else if (bytes > 0) {
    std::memcpy(to, from, bytes);
  }
}

}  // namespace

Fused::Fused(std::vector<Part> parts, std::uint64_t digest)
    : parts_(std::move(parts)), data_(std::make_unique_for_overwrite<std::byte[]>(bytes_of(parts_))), digest_(digest) {
  std::byte* to = data_.get();
  for (const Part& part : parts_) {
    copy(to, part.in, part.bytes);
    to += part.bytes;
  }
}

bool Fused::does(const Request& request) const {
  return std::ranges::any_of(parts_, [&](const Part& part) { return part.request.get() == &request; });
}

void Fused::begin(std::shared_ptr<Request> request, const std::function<void(Request&)>& begin) {
  kept_ = std::move(request);
  for (const Part& part : parts_)
    if (part.request != nullptr) begin(*part.request);
}

std::shared_ptr<Request> Fused::deliver(bool is_well, const std::function<void(Request&)>& finish) {
  const std::byte* from = data_.get();
  for (const Part& part : parts_) {
    if (is_well) copy(part.out, from, part.bytes);
    from += part.bytes;
    if (part.request != nullptr) finish(*part.request);
  }
  return std::move(kept_);
}

}  // namespace tutti::internal
