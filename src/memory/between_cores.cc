#include "memory/between_cores.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace tutti::internal {
namespace {

#if defined(__x86_64__)
// "Fast short rep mov": leaf 7 of CPUID, bit 4 of EDX (Intel, Software Developer's Manual, volume 2, CPUID).
bool has_quick_short_strings() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d >> 4 & 1) != 0;
}

BetweenCores of_this_processor() {
  const BetweenCores found;
  __builtin_cpu_init();
  if (__builtin_cpu_is("intel") == 0 || has_quick_short_strings()) return found;
  return {.far_ns = 110,
          .copies_by_narrow_vectors = true,
          .past_cache_pays = false,
          .strings_one_way_from = 1 << 20,
          .measures_reads = false,
          .reads_moved_from = 64 << 10,
          .reads_sent_from = ~std::size_t{0},
          .reads_combined_from = ~std::size_t{0},
          .split_shared_from = 128 << 10,
          .split_from = 128 << 10,
          .copies_are_dear = true,
          .fetches_to_write_up_to = 256 << 10};
}
#else
BetweenCores of_this_processor() { return {}; }
#endif

BetweenCores& known() {
  static BetweenCores found = of_this_processor();
  return found;
}

}  // namespace

const BetweenCores& between_cores() { return known(); }

void assume_between_cores(const BetweenCores& cores) { known() = cores; }

}  // namespace tutti::internal
