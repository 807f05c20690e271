/// @file
/// What the shared library shows to programs.
#pragma once

/// Marks what the shared library exports: each public function, and each public class that has a table of virtual
/// functions. Everything else in the library is hidden. docs/guide/link.md says which names stay.
#define TUTTI_API __attribute__((visibility("default")))
