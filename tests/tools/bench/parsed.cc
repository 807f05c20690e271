#include "tools/bench/parsed.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "command.h"

namespace tutti::internal::tools {

BenchOptions parsed(std::vector<std::string> words) try {
  CLI::App app;
  BenchOptions options;
  describe(app, options);
  std::ranges::reverse(words);  // as CLI11 takes them
  app.parse(words);
  return options;
} catch (const CLI::ParseError& error) {
  throw NotUnderstood(error.what());
}

int status_of(std::vector<std::string> words) {
  CLI::App app;
  const Subcommand bench = add_bench(app);
  words.insert(words.begin(), "bench");
  std::ranges::reverse(words);
  try {
    app.parse(words);
    return bench.run();
  } catch (const CLI::ParseError&) {
    return 2;
  } catch (const UsageError&) {
    return 2;
  } catch (const std::exception&) {
    return 1;
  }
}

}  // namespace tutti::internal::tools
