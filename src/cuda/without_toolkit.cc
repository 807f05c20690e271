// What there is of this folder where CUDA's toolkit was not, or not wanted.
#include <fmt/format.h>

#include "cuda/device.h"
#include "cuda/links.h"
#include "cuda/memory.h"
#include "cuda/reduce.h"
#include "cuda/stopwatch.h"
#include "cuda/stream.h"
#include "tutti/error.h"

namespace tutti::internal::cuda {
namespace {

constexpr const char* kReason =
    "this tutti was built without CUDA; build it where nvcc is found, with TUTTI_CUDA=ON to be told why it is not";

[[noreturn]] void refuse() { throw Error(ErrorCode::unsupported, kReason); }

}  // namespace

std::string Devices::why_none() const { return kReason; }

Devices find_devices() { return {{}, {kReason}}; }

std::vector<Link> links_among(const std::vector<Device>&) { return {}; }
Versions versions() { return {}; }

void reduce(const ReduceSpec&, std::span<const ReduceSource>, std::span<const ReduceTarget>, std::size_t, Stream) {
  refuse();
}

bool is_possible() { return false; }
Location location_of(const void*) { return {}; }
DeviceMemory::DeviceMemory(int device, std::size_t) : device_(device) { refuse(); }
DeviceMemory::~DeviceMemory() = default;
PinnedMemory::PinnedMemory(int device, std::size_t bytes) : device_(device), bytes_(bytes) { refuse(); }
PinnedMemory::~PinnedMemory() = default;
Pinned::Pinned(int device, std::byte* data, std::size_t) : device_(device), data_(data) { refuse(); }
Pinned::~Pinned() = default;

Stream legacy_stream() { return nullptr; }
int current_device() { refuse(); }
int device_of(Stream) { refuse(); }
OnDevice::OnDevice() = default;
OnDevice::OnDevice(int) { refuse(); }
OnDevice::OnDevice(int, std::nothrow_t) noexcept {}
OnDevice::~OnDevice() = default;
OwnStream::OwnStream(int device) : device_(device) { refuse(); }
OwnStream::~OwnStream() = default;
void OwnStream::finish() const { refuse(); }
std::optional<Error> OwnStream::failure() const noexcept { return {}; }
Event::Event(int device) : device_(device) { refuse(); }
Event::~Event() = default;
void Event::record(Stream) { refuse(); }
bool Event::is_done() const { refuse(); }
void Event::hold(Stream) const { refuse(); }
void copy(std::byte*, const std::byte*, std::size_t, Stream) { refuse(); }
void copy_rows(std::byte*, std::size_t, const std::byte*, std::size_t, std::size_t, std::size_t, Direction, Stream) {
  refuse();
}
Stopwatch::Stopwatch(int device) : device_(device) { refuse(); }
Stopwatch::~Stopwatch() = default;
void Stopwatch::start(Stream) { refuse(); }
void Stopwatch::stop(Stream) { refuse(); }
double Stopwatch::us() const { refuse(); }
bool launches_block() { return false; }
bool is_capturing(Stream) { refuse(); }
Semaphore::Semaphore(int device) : memory_(device, 0) { refuse(); }
Semaphore::~Semaphore() = default;
void Semaphore::signal(std::uint32_t) { refuse(); }
bool Semaphore::has(std::uint32_t) const { refuse(); }
void Semaphore::signal(std::uint32_t, Stream) { refuse(); }
void Semaphore::hold(Stream, std::uint32_t) const { refuse(); }

}  // namespace tutti::internal::cuda
