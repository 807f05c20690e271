// The seam between main.cc and its subcommands: each add_* describes its options to the parser and says what to run.
//
// run() returns the exit status: 0 done, 1 the job failed, 2 the command line or its input was wrong. It may throw:
// main prints "tutti NAME: <what>" on stderr and exits 2 for a UsageError and for Error{invalid_argument, unsupported},
// 1 otherwise.
#pragma once

#include <functional>
#include <limits>
#include <stdexcept>
#include <string>

namespace CLI {
class App;
class Validator;
}  // namespace CLI

namespace tutti::internal::tools {

struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What went wrong, for a message: what() but for memory that ran out, of which that says nothing to people.
std::string in_words(const std::exception& error);

// Where stderr cannot be written nothing is left to be said, and the exit status tells.
void say_on_stderr(const std::string& text);

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
Subcommand add_status(CLI::App& app);  // status.cc

}  // namespace tutti::internal::tools
