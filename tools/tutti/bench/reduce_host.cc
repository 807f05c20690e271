// The CPU's reduce() beside copy_bytes(), on one thread.
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>

#include "bench/limit.h"
#include "bench/reduce.h"
#include "bench/values.h"
#include "memory/copy.h"
#include "tutti/error.h"

namespace tutti::internal::tools {
namespace {

// From so many bytes on, read and written, neither keeps what it writes in the cache.
constexpr std::size_t kPastCacheBytes = std::size_t{32} << 20;

struct Free {
  void operator()(std::byte* memory) const { std::free(memory); }
};

std::byte* allocate(std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  void* const memory = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
  if (memory == nullptr)
    throw Error(ErrorCode::system, fmt::format("no memory for {} bytes; use a smaller --max or -n", bytes));
  return static_cast<std::byte*>(memory);
}

class Host final : public ReduceSubject {
 public:
  Host(const BenchOptions& options, std::size_t max_count)
      : element_(size_of(options.dtype)),
        memory_(options, max_count),
        own_(allocate(memory_.bytes)),
        call_(options, memory_, own_.get()) {
    std::memset(own_.get(), 0, memory_.bytes);  // what copies read between the sources, too
    for (std::size_t i = 0; i < memory_.sources; ++i)
      write_input(own_.get() + i * memory_.stride_bytes, 0, max_count, options.dtype, static_cast<int>(i));
  }

  double reduce_us(std::size_t count, std::size_t calls) override {
    ReduceSpec spec = call_.spec;
    spec.stream = (memory_.sources + 1) * count * element_ > kPastCacheBytes;
    return time(calls, [&] { reduce(spec, call_.sources, {&call_.target, 1}, count); });
  }
  double copy_us(std::size_t bytes, std::size_t calls) override {
    const bool past_cache = 2 * bytes > kPastCacheBytes;
    return time(calls, [&] { copy_bytes(own_.get() + memory_.copies(), own_.get(), bytes, past_cache); });
  }
  void spoil(std::size_t count) override { std::memset(call_.target.data, 0xa5, count * element_); }
  void read(std::byte* to, std::size_t first, std::size_t count) override {
    std::memcpy(to, call_.target.data + first * element_, count * element_);
  }

 private:
  template <class Call>
  static double time(std::size_t calls, const Call& call) {
    const FloatEnvironment ieee;
    call();
    const double start = now_us();
    for (std::size_t i = 0; i < calls; ++i) call();
    return (now_us() - start) / static_cast<double>(calls);
  }

  std::size_t element_;
  ReduceMemory memory_;
  std::unique_ptr<std::byte, Free> own_;
  ReduceCall call_;
};

}  // namespace

std::unique_ptr<ReduceSubject> host_subject(const BenchOptions& options, std::size_t max_count) {
  return std::make_unique<Host>(options, max_count);
}

}  // namespace tutti::internal::tools
