#include "runtime/report.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <string>

namespace tutti::runtime {
namespace {

TEST(Report, AStderrThatNobodyReadsHoldsNobodyUp) {
  int pipe[2];
  ASSERT_EQ(pipe2(pipe, O_CLOEXEC | O_NONBLOCK), 0);
  const std::string page(4096, 'x');
  while (write(pipe[1], page.data(), page.size()) > 0) continue;
  fcntl(pipe[1], F_SETFL, 0);
  const int kept = dup(STDERR_FILENO);
  dup2(pipe[1], STDERR_FILENO);
  auto reports = std::async(std::launch::async, [] {
    report(3, "one");
    report(3, "two");
  });
  const bool is_held_up = reports.wait_for(std::chrono::seconds(5)) != std::future_status::ready;
  std::string text(1 << 20, ' ');
  while (read(pipe[0], text.data(), text.size()) > 0) continue;
  reports.wait();
  report(3, "three");
  dup2(kept, STDERR_FILENO);
  const ssize_t bytes = read(pipe[0], text.data(), text.size());
  for (const int fd : {kept, pipe[0], pipe[1]}) close(fd);
  EXPECT_FALSE(is_held_up);
  EXPECT_EQ(text.substr(0, static_cast<std::size_t>(std::max<ssize_t>(bytes, 0))),
            "tutti: rank 3: 2 lines were dropped, as nobody had read what is on stderr\ntutti: rank 3: three\n");
}

}  // namespace
}  // namespace tutti::runtime
