#include "program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "command.h"
#include "net/handshake.h"
#include "tutti/error.h"
#include "tutti/version.h"

namespace {

using tutti::internal::tools::Subcommand;

bool is_wrong_input(const tutti::Error& error) {
  return error.code == tutti::ErrorCode::invalid_argument || error.code == tutti::ErrorCode::unsupported;
}

int complain(const std::string& who, const std::string& what, int status) {
  tutti::internal::tools::say_on_stderr(fmt::format("{}: {}\n", who, what));
  return status;
}

// What was printed has to have arrived: rows that a full disk swallowed are a failure.
int with_output_written(const std::string& who, int status) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  return complain(who, fmt::format("cannot write the output: {}", std::strerror(errno)), std::max(status, 1));
}

int run(const Subcommand& command) {
  const std::string who = "tutti " + command.parser->get_name();
  try {
    return with_output_written(who, command.run());
  } catch (const tutti::internal::tools::UsageError& error) {
    return complain(who, error.what(), 2);
  } catch (const tutti::Error& error) {
    return complain(who, error.what(), is_wrong_input(error) ? 2 : 1);
  } catch (const std::exception& error) {
    return complain(who, tutti::internal::tools::in_words(error), 1);
  }
}

// A descriptor that is closed would be the next file's or socket's, and what is printed would go there.
void open_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) < 0) open("/dev/null", O_RDWR);  // takes the lowest that is free: this one
  }
}

// The arguments, last first, as CLI11 takes them. A "--" before the program of `tutti run` is left out: CLI11 would
// give what follows to the parser above.
std::vector<std::string> arguments(int argc, char** argv, const CLI::App* run) {
  std::vector<std::string> args(argv + 1, argv + argc);
  if (!args.empty() && args.front() == run->get_name()) {
    std::size_t at = 1;
    while (at < args.size() && args[at].size() > 1 && args[at].front() == '-' && args[at] != "--") {
      const CLI::Option* option = run->get_option_no_throw(args[at]);
      at += option != nullptr && option->get_expected_max() > 0 ? 2 : 1;
    }
    if (at < args.size() && args[at] == "--") args.erase(args.begin() + static_cast<std::ptrdiff_t>(at));
  }
  std::reverse(args.begin(), args.end());
  return args;
}

}  // namespace

namespace tutti::internal::tools {

int run_program(int argc, char** argv) {
  open_standard_streams();
  CLI::App app("tutti: all together. Collective communication, and a small trainer that stands on it.", "tutti");
  app.require_subcommand(0, 1);
  app.set_version_flag("--version",
                       fmt::format("tutti {}, protocol {}", TUTTI_VERSION, tutti::internal::Handshake::kVersion),
                       "Print the version; ranks of one job need the same protocol");
  const Subcommand commands[] = {
      tutti::internal::tools::add_run(app),    tutti::internal::tools::add_bench(app),
      tutti::internal::tools::add_train(app),  tutti::internal::tools::add_plan(app),
      tutti::internal::tools::add_tune(app),   tutti::internal::tools::add_doctor(app),
      tutti::internal::tools::add_status(app),
  };
  const auto given = [&]() -> const Subcommand* {
    for (const Subcommand& command : commands) {
      if (command.parser->parsed()) return &command;
    }
    return nullptr;
  };
  const auto who_was_given = [&] { return given() != nullptr ? "tutti " + given()->parser->get_name() : "tutti"; };
  try {
    app.parse(arguments(argc, argv, commands[0].parser));
  } catch (const CLI::Success& asked) {  // --help, --version
    return with_output_written(who_was_given(), app.exit(asked));
  } catch (const CLI::ParseError& error) {
    const std::string who = who_was_given();
    return complain(who, fmt::format("{}\nTry {} --help.", error.what(), who), 2);
  }
  if (given() == nullptr)
    return complain("tutti", "say what to do: run, bench, train, plan, tune, doctor or status. Try tutti --help.", 2);
  return run(*given());
}

}  // namespace tutti::internal::tools
