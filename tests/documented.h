// The bytes of the worked examples in docs/reference/protocols.md.
#pragma once

#include <gtest/gtest.h>

#include <cctype>
#include <cstddef>
#include <fstream>
#include <span>
#include <string>

namespace tutti::internal {

// "54 55 …" as the page has it below the line "    NAME, …:", up to a line that is not indented further: of each line,
// the pairs of hexadecimal digits with which it begins.
inline std::string documented(const std::string& name) {
  std::ifstream page(TUTTI_SOURCES "/docs/reference/protocols.md");
  std::string line, bytes;
  while (std::getline(page, line) && !(line.starts_with("    " + name + ",") && line.ends_with(":"))) {
  }
  const auto is_digit = [&](std::size_t at) { return at < line.size() && std::isxdigit(line[at]) != 0; };
  while (std::getline(page, line) && line.starts_with("      "))
    for (std::size_t at = 6; is_digit(at) && is_digit(at + 1) && (at + 2 == line.size() || line[at + 2] == ' ');
         at += 3)
      bytes += line.substr(at, 2) + " ";
  EXPECT_FALSE(bytes.empty()) << "docs/reference/protocols.md has no example " << name;
  return bytes;
}

inline std::string in_hex(std::span<const std::byte> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<int>(byte) >> 4];
    text += kDigits[std::to_integer<int>(byte) & 15];
    text += ' ';
  }
  return text;
}

}  // namespace tutti::internal
