#include "base/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <stdexcept>
#include <string>
#include <utility>

namespace tutti::internal {
namespace {

Settings settings_of(int rank, LogLevel level = LogLevel::warn, LogSink sink = nullptr) {
  Settings settings;
  settings.rank = rank;
  settings.log_level = level;
  settings.log_sink = std::move(sink);
  return settings;
}

TEST(Log, SaysWhatItsLevelAsksFor) {
  for (const LogLevel level : {LogLevel::warn, LogLevel::info, LogLevel::trace}) {
    std::string said;
    const Log log(settings_of(3, level, [&](const LogLine& line) {
      EXPECT_EQ(line.rank, 3);
      said += std::to_string(static_cast<int>(line.level)) + std::string(line.text);
    }));
    log.warn("a");
    log.info([] { return std::string("b"); });
    log.trace([] { return std::string("c"); });
    EXPECT_EQ(said, std::string("0a1b2c").substr(0, 2 + 2 * static_cast<std::size_t>(level)));
  }
}

TEST(Log, MakesNoWordsThatNobodyWants) {
  const Log log(settings_of(0, LogLevel::warn, [](const LogLine&) { ADD_FAILURE(); }));
  log.info([] {
    ADD_FAILURE();
    return std::string();
  });
}

TEST(Log, DropsWhatItsSinkThrows) {
  const Log log(settings_of(0, LogLevel::warn, [](const LogLine&) { throw std::runtime_error("not wanted"); }));
  log.warn("a");
}

TEST(Log, AStderrThatNobodyReadsHoldsNobodyUp) {
  int pipe[2];
  ASSERT_EQ(pipe2(pipe, O_CLOEXEC | O_NONBLOCK), 0);
  const std::string page(4096, 'x');
  while (write(pipe[1], page.data(), page.size()) > 0) continue;
  fcntl(pipe[1], F_SETFL, 0);
  const int kept = dup(STDERR_FILENO);
  dup2(pipe[1], STDERR_FILENO);
  const Log log(settings_of(3));
  auto reports = std::async(std::launch::async, [&] {
    log.warn("one");
    log.warn("two");
  });
  const bool is_held_up = reports.wait_for(std::chrono::seconds(5)) != std::future_status::ready;
  std::string text(1 << 20, ' ');
  while (read(pipe[0], text.data(), text.size()) > 0) continue;
  reports.wait();
  log.warn("three");
  dup2(kept, STDERR_FILENO);
  const ssize_t bytes = read(pipe[0], text.data(), text.size());
  for (const int fd : {kept, pipe[0], pipe[1]}) close(fd);
  EXPECT_FALSE(is_held_up);
  EXPECT_EQ(text.substr(0, static_cast<std::size_t>(std::max<ssize_t>(bytes, 0))),
            "tutti: rank 3: 2 lines were dropped, as nobody had read what is on stderr\ntutti: rank 3: three\n");
}

}  // namespace
}  // namespace tutti::internal
