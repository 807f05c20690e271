#include "runtime/record_writer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

namespace tutti::internal {
namespace {

using namespace std::chrono_literals;

TEST(RecordWriter, HoldsUpNobodyWhileTheDirectoryHangs) {
  struct Directory {
    std::atomic<bool> hangs{true};
    std::atomic<int> begun{0}, written{0}, complaints{0};
  };
  const auto directory = std::make_shared<Directory>();  // the thread may outlive this test
  const auto begin = std::chrono::steady_clock::now();
  {
    RecordWriter writer(
        [directory](const std::string& text) {
          ++directory->begun;
          while (directory->hangs) std::this_thread::sleep_for(1ms);
          directory->written += text == "last" ? 100 : 1;
          return text;
        },
        [directory](const std::string&) { ++directory->complaints; });
    EXPECT_TRUE(writer.wait(0ms));
    writer.put("first");
    while (directory->begun == 0) std::this_thread::sleep_for(1ms);
    writer.put("second");
    writer.put("last");
    EXPECT_FALSE(writer.wait(20ms));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
    directory->hangs = false;
    EXPECT_TRUE(writer.wait(10s));
    EXPECT_EQ(directory->written, 101);
    EXPECT_EQ(directory->complaints, 2);
    directory->hangs = true;
    writer.put("never");
  }
  directory->hangs = false;
  while (directory->written != 102) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(5ms);
  EXPECT_EQ(directory->complaints, 2);  // nobody wants to hear it any more
}

}  // namespace
}  // namespace tutti::internal
