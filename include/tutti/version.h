/// @file
/// The version of these headers, for programs that are built with several versions. CHANGELOG.md says what has changed.
// CMakeLists.txt reads the version here.
#pragma once

#define TUTTI_VERSION_MAJOR 0  ///< the first number of the version
#define TUTTI_VERSION_MINOR 1  ///< the second
#define TUTTI_VERSION_PATCH 0  ///< the third

/// The version as text.
#define TUTTI_VERSION "0.1.0"
/// The version as a number, to compare with: 10203 is 1.2.3.
#define TUTTI_VERSION_NUMBER (TUTTI_VERSION_MAJOR * 10000 + TUTTI_VERSION_MINOR * 100 + TUTTI_VERSION_PATCH)
