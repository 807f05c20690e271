// The seam between main.cc and its subcommands: each add_* describes its options to the parser and says what to run.
//
// run() returns the exit status: 0 done, 1 the job failed, 2 the command line or its input was wrong. It may throw:
// main prints "tutti NAME: <what>" on stderr and exits 2 for a UsageError and for Error{invalid_argument, unsupported},
// 1 otherwise.
#pragma once

#include <functional>
#include <limits>
#include <stdexcept>

namespace CLI {
class App;
class Validator;
}  // namespace CLI

namespace tutti::tools {

struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A check for options that are whole numbers in [least, most].
CLI::Validator whole_number(long long least, long long most = std::numeric_limits<long long>::max());

struct Subcommand {
  CLI::App* parser;
  std::function<int()> run;
};

Subcommand add_run(CLI::App& app);     // run.cc
Subcommand add_bench(CLI::App& app);   // bench.cc
Subcommand add_train(CLI::App& app);   // train.cc
Subcommand add_plan(CLI::App& app);    // plan.cc
Subcommand add_tune(CLI::App& app);    // tune.cc
Subcommand add_doctor(CLI::App& app);  // doctor.cc

}  // namespace tutti::tools
