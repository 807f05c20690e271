#include "fake_cuda/stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "fake_cuda/process.h"

namespace tutti::internal::fake {
namespace {

constexpr std::uint32_t kMaxOperations = 1024;

Relaxed<std::uint64_t> delay_seed{0};

void delay(std::uint32_t stream, std::uint32_t operation) {
  const std::uint64_t seed = delay_seed;
  if (seed == 0) return;
  // splitmix64
  std::uint64_t bits = seed + 0x9e3779b97f4a7c15 * (std::uint64_t{stream} << 32 | operation);
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ bits >> 27) * 0x94d049bb133111eb;
  std::this_thread::sleep_for(std::chrono::microseconds((bits ^ bits >> 31) % 200));
}

}  // namespace

void set_delay_seed(std::uint64_t seed) { delay_seed = seed; }

Stream::Stream(Device& on, std::uint32_t stream_number, Blocking is_blocking)
    : device(on), number(stream_number), blocking(is_blocking), newest_(new Operation) {
  std::thread([this, before = newest_] { run(before); }).detach();
}

void Stream::put(Operation* operation) {
  const std::lock_guard lock(pushing_);
  newest_->next.store(operation, std::memory_order_release);
  newest_ = operation;
  const std::uint32_t count = last() + 1;
  pushed_count_ = count;
  pushed_.raise(count);
}

void Stream::push(Work work, bool always) { put(new Operation{std::move(work), always}); }
void Stream::end() { put(new Operation{{}, false, true}); }

bool Stream::cancelled() const { return abandoned_ || device.failure() != cudaSuccess; }

void Stream::perform(Operation& operation, std::uint32_t operation_number) {
  if (operation.last || (cancelled() && !operation.always)) return;
  delay(number, operation_number);
  try {
    operation.work();
  } catch (const Fault& fault) {
    device.fail(fault);
  } catch (const std::exception& error) {
    device.fail({cudaErrorLaunchFailure, error.what()});
  }
  operation.work = nullptr;  // what it holds goes before it is said to be done
}

void Stream::run(Operation* before) {
  for (std::uint32_t n = 1;; ++n) {
    pushed_.wait_unordered(n);
    Operation* next = nullptr;
    while (next == nullptr) next = before->next.load(std::memory_order_acquire);
    delete before;
    before = next;
    perform(*next, n);
    const bool last = next->last;
    if (last) delete next;
    done_.raise(n);
    if (last) return;
  }
}

Stream& Device::add(Blocking blocking) {
  return streams_.emplace_back(*this, static_cast<std::uint32_t>(streams_.size() + 1), blocking);
}

Stream& Device::create(Blocking blocking) {
  const std::lock_guard lock(ordering_);
  return add(blocking);
}

void Device::destroy(Stream& stream) {
  const std::lock_guard lock(ordering_);
  stream.destroyed = true;
  stream.end();
}

Stream& Device::legacy() {
  const std::lock_guard lock(ordering_);
  if (legacy_ == nullptr) legacy_ = &add(Blocking::legacy);
  return *legacy_;
}

void Device::enqueue(Stream& stream, Stream::Work work, bool always) {
  if (stream.capturing) return;
  if (process().one_lock && stream.last() >= kMaxOperations) stream.wait_for(stream.last() - kMaxOperations + 1);
  const bool one_queue = process().one_queue;
  if (stream.blocking == Blocking::none && !one_queue) return stream.push(std::move(work), always);
  const std::lock_guard lock(ordering_);
  std::vector<Point> before;
  if (one_queue && newest_.stream != nullptr) before.push_back(newest_);
  for (Stream& each : streams_) {
    if (stream.blocking != Blocking::none && each.blocking != Blocking::none && each.blocking != stream.blocking &&
        each.last() != 0)
      before.push_back({&each, each.last()});
  }
  if (!before.empty()) {
    stream.push(
        [before = std::move(before)] {
          for (const Point& each : before) each.stream->wait_for(each.operation);
        },
        true);
  }
  stream.push(std::move(work), always);
  newest_ = {&stream, stream.last()};
}

void Device::finish() {
  std::vector<Point> points;
  {
    const std::lock_guard lock(ordering_);
    for (Stream& each : streams_) points.push_back({&each, each.last()});
  }
  for (const Point& each : points) each.stream->wait_for(each.operation);
}

bool Device::any_capturing() {
  const std::lock_guard lock(ordering_);
  return std::ranges::any_of(streams_, [](const Stream& each) -> bool { return each.capturing; });
}

bool Device::any_blocking_captures() {
  const std::lock_guard lock(ordering_);
  return std::ranges::any_of(streams_,
                             [](const Stream& each) { return each.blocking == Blocking::blocking && each.capturing; });
}

void Device::fail(const Fault& fault) {
  int none = cudaSuccess;
  if (failure_.compare_exchange_strong(none, fault.error, std::memory_order_relaxed))
    fmt::print(stderr, "fake GPU {}: {}\n", index, fault.message);
}

int Device::live_streams() {
  const std::lock_guard lock(ordering_);
  return static_cast<int>(std::ranges::count_if(
      streams_, [](const Stream& each) { return each.blocking != Blocking::legacy && !each.destroyed; }));
}

void Device::abandon() {
  for (Stream& each : streams_) each.abandon();
}
void Device::end() {
  for (Stream& each : streams_) {
    if (!each.destroyed) each.end();
  }
}
void Device::clear() {
  for (const Stream& each : streams_) each.finish();
  streams_.clear();
  legacy_ = nullptr;
  newest_ = {};
  failure_ = cudaSuccess;
}

Record& Event::add() {
  const std::lock_guard lock(recording_);
  return records_.emplace_back();
}

Record* Event::latest() {
  const std::lock_guard lock(recording_);
  return records_.empty() ? nullptr : &records_.back();
}

}  // namespace tutti::internal::fake
