// The version of these headers, for programs that are built with several. CHANGELOG.md says what has changed.
// CMakeLists.txt reads it here.
#pragma once

#define TUTTI_VERSION_MAJOR 0
#define TUTTI_VERSION_MINOR 1
#define TUTTI_VERSION_PATCH 0

#define TUTTI_VERSION "0.1.0"
// To compare with: 10203 is 1.2.3.
#define TUTTI_VERSION_NUMBER (TUTTI_VERSION_MAJOR * 10000 + TUTTI_VERSION_MINOR * 100 + TUTTI_VERSION_PATCH)
