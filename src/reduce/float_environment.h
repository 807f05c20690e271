// Sets the floating-point control word to IEEE defaults (nearest even, no flush to zero, no denormals-as-zero) and puts
// the caller's back when it goes. Costs one read of the word when nothing differs.
#pragma once

#include <cstdint>
#if defined(__x86_64__)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace tutti::internal {

class FloatEnvironment {
 public:
  FloatEnvironment() : before_(get()) {
    if (!is_default(before_)) set(kDefault);
  }
  ~FloatEnvironment() {
    if (!is_default(before_)) set(before_);
  }
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
#if defined(__x86_64__)
  static constexpr std::uint32_t kDefault = 0x1f80;      // all exceptions masked, to nearest even, denormals kept
  static constexpr std::uint32_t kStickyFlags = 0x003f;  // what has been raised so far: no influence on results
  static std::uint32_t get() { return _mm_getcsr(); }
  static void set(std::uint32_t word) { _mm_setcsr(word); }
  static bool is_default(std::uint32_t word) { return (word & ~kStickyFlags) == kDefault; }
#else
  // Only the rounding mode has a portable name; processors without MXCSR do not flush denormals unless told to.
  static constexpr std::uint32_t kDefault = FE_TONEAREST;
  static std::uint32_t get() { return static_cast<std::uint32_t>(std::fegetround()); }
  static void set(std::uint32_t word) { std::fesetround(static_cast<int>(word)); }
  static bool is_default(std::uint32_t word) { return word == kDefault; }
#endif

  const std::uint32_t before_;
};

}  // namespace tutti::internal
