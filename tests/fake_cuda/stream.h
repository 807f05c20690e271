// Streams and events of fake devices. What the program's threads share is under locks that no stream takes.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "fake_cuda/regions.h"
#include "fake_cuda/sharing.h"

namespace tutti::internal::fake {

class Device;

// Which other streams of the device a stream waits for, and is waited for by: blocking ones and the default stream
// (legacy) for each other.
enum class Blocking { none, blocking, legacy };

// A thread that does one thing after the other. Lives on until the process ends, or it is told not to (reset()): what
// was put on it before it was destroyed is still done, and events may refer to it.
class Stream {
 public:
  using Work = std::function<void()>;  // may throw Fault

  Stream(Device& on, std::uint32_t stream_number, Blocking is_blocking);
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Device& device;
  const std::uint32_t number;
  const Blocking blocking;
  Relaxed<bool> destroyed{false}, capturing{false};

  // What the device has failed before is not done, but whatever `always` says is: that others go on.
  void push(Work work, bool always = false);
  std::uint32_t last() const { return pushed_count_; }
  bool is_done() const { return done_.has(last()); }
  void wait_for(std::uint32_t operation) const { done_.await(operation); }
  void finish() const { wait_for(last()); }
  // Whether what it does is to be given up: what it waits for may never come.
  bool cancelled() const;
  void abandon() { abandoned_ = true; }
  void end();

 private:
  struct Operation {
    Work work;
    bool always = false, last = false;
    std::atomic<Operation*> next{nullptr};
  };
  void put(Operation* operation);
  void run(Operation* before);
  void perform(Operation& operation, std::uint32_t operation_number);

  std::mutex pushing_;
  Operation* newest_;
  Relaxed<std::uint32_t> pushed_count_{0};
  Counter pushed_, done_;
  Relaxed<bool> abandoned_{false};
};

// A device's streams, and the order between its default stream and the blocking ones.
class Device {
 public:
  explicit Device(int ordinal) : index(ordinal) {}

  const int index;

  Stream& create(Blocking blocking);
  void destroy(Stream& stream);
  Stream& legacy();  // the default stream
  // Puts it behind what CUDA orders it behind; on a stream that is being captured, nowhere.
  void enqueue(Stream& stream, Stream::Work work, bool always = false);
  void finish();  // all that was put on any stream
  bool any_capturing();
  bool any_blocking_captures();

  // cudaSuccess, or what it failed with, which all that follows on it returns.
  cudaError_t failure() const { return static_cast<cudaError_t>(failure_.load(std::memory_order_relaxed)); }
  void fail(const Fault& fault);

  int live_streams();

  // Together, of all devices in turn: all streams end, whatever they wait for.
  void abandon();
  void end();
  void clear();

 private:
  struct Point {
    Stream* stream = nullptr;
    std::uint32_t operation = 0;
  };
  Stream& add(Blocking blocking);

  std::mutex ordering_;
  std::deque<Stream> streams_;
  Stream* legacy_ = nullptr;
  Point newest_;  // where all streams share one queue
  std::atomic<int> failure_{cudaSuccess};
};

// One recording of an event. Kept as long as the event, which is kept: counting who refers to it would order streams.
struct Record {
  Counter passed;  // 1 as soon as the stream got there
  Relaxed<std::int64_t> time_ns{0};
};

struct Event {
  Event(Device& on, bool is_timed) : device(on), timed(is_timed) {}
  Device& device;
  const bool timed;
  Relaxed<bool> destroyed{false};

  Record& add();
  Record* latest();  // nullptr where none was made

 private:
  std::mutex recording_;
  std::deque<Record> records_;
};

void set_delay_seed(std::uint64_t seed);

}  // namespace tutti::internal::fake
