#include "reduce/reduce.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace tutti {

#if defined(__x86_64__)

namespace {
constexpr std::uint32_t kDefault = 0x1f80;      // all exceptions masked, to nearest even, denormals kept
constexpr std::uint32_t kStickyFlags = 0x003f;  // what has been raised so far: no influence on results
}  // namespace

FloatEnvironment::FloatEnvironment() : before_(_mm_getcsr()) {
  if ((before_ & ~kStickyFlags) != kDefault) _mm_setcsr(kDefault);
}

FloatEnvironment::~FloatEnvironment() {
  if ((before_ & ~kStickyFlags) != kDefault) _mm_setcsr(before_);
}

#else

// Only the rounding mode has a portable name; processors without MXCSR do not flush denormals unless told to.
FloatEnvironment::FloatEnvironment() : before_(static_cast<std::uint32_t>(std::fegetround())) {
  if (before_ != FE_TONEAREST) std::fesetround(FE_TONEAREST);
}

FloatEnvironment::~FloatEnvironment() {
  if (before_ != FE_TONEAREST) std::fesetround(static_cast<int>(before_));
}

#endif

}  // namespace tutti
