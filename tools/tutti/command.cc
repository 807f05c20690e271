#include "command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <new>

namespace tutti::internal::tools {

void say_on_stderr(const std::string& text) { std::fputs(text.c_str(), stderr); }

std::string in_words(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) == nullptr) return error.what();
  return "the system gives this process no more memory: ask for less (fewer ranks, bytes or points), or let it have "
         "more "
         "(ulimit -v, the memory of its container)";
}

CLI::Validator whole_number(long long least, long long most) {
  const std::string range =
      most == std::numeric_limits<long long>::max() ? fmt::format(">= {}", least) : fmt::format("{}..{}", least, most);
  const auto complaint = [=](std::string& text) -> std::string {
    long long value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size() && value >= least && value <= most) return {};
    return fmt::format("'{}' is not a whole number {}", text, range);
  };
  return CLI::Validator(complaint, range);
}

}  // namespace tutti::internal::tools
