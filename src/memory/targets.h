// Which instruction sets the kernels are compiled for: AVX-512, AVX2, NEON, and plain C++ for everything else. Each
// further one costs build time and pays only on processors that are older than AVX2. Under sanitizers, where each costs
// most, AVX-512 is left out, and under ThreadSanitizer AVX2 too, for the source is the same; tools/check --all leaves
// none out. AVX-512 of the newer kind (AVX3_DL) is for whoever defines HWY_WANT_AVX3_DL before, in an optimised build.
//
// Each file that uses Highway includes this one before any of Highway's headers: where a file is not optimised,
// ChosenTarget::GetIndex(), which depends on these sets, is not inlined, and the linker takes one for all files. Of
// another file's sets it would lead to a kernel that was not compiled (one_definition.py looks for such files).
#pragma once

#if defined(TUTTI_BRIEF) && defined(__SANITIZE_THREAD__)
#define TUTTI_NOT_UNDER_SANITIZERS (HWY_AVX3_DL | HWY_AVX3 | HWY_AVX2)
#elif defined(TUTTI_BRIEF)
#define TUTTI_NOT_UNDER_SANITIZERS (HWY_AVX3_DL | HWY_AVX3)
#else
#define TUTTI_NOT_UNDER_SANITIZERS 0
#endif
#if defined(HWY_WANT_AVX3_DL) && defined(__OPTIMIZE__)
#define TUTTI_NOT_WANTED 0
#else
#define TUTTI_NOT_WANTED HWY_AVX3_DL
#endif
#define HWY_DISABLED_TARGETS                                                                                 \
  (TUTTI_NOT_UNDER_SANITIZERS | TUTTI_NOT_WANTED | HWY_SSSE3 | HWY_SSE4 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | \
   HWY_SVE2_128 | HWY_RVV | HWY_WASM_EMU256)
