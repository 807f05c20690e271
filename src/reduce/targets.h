// Which instruction sets the kernels are compiled for: AVX-512, AVX2, NEON, and plain C++ for everything else. Each
// further one costs build time and pays only on processors that are older than AVX2. Included before any of Highway's
// headers.
#pragma once

#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV | HWY_WASM_EMU256)
