// What sanitizers leave out of a test.
#pragma once

namespace tutti::internal {

// Sanitizers look at how memory is accessed, not at values: so a test tries fewer types, counts and ranks there, of
// each kind some. docs/checks.md lists it; `tools/check --all` leaves nothing out.
#ifdef TUTTI_BRIEF
inline constexpr bool kBrief = true;
#else
inline constexpr bool kBrief = false;
#endif

}  // namespace tutti::internal
