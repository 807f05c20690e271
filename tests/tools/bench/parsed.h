// `tutti bench` without its process. What CLI11 takes to compile is in parsed.cc alone.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "bench/options.h"

namespace tutti::internal::tools {

struct NotUnderstood : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

// The options of a command line; throws NotUnderstood.
BenchOptions parsed(std::vector<std::string> words);

// The exit status of a command line, complaints of the parser and of the command as main() counts them.
int status_of(std::vector<std::string> words);

}  // namespace tutti::internal::tools
