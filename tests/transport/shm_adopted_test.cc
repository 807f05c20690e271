// Memory of the caller that becomes a part of a rank's segment, in place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "transport/shm_pair.h"
#include "tutti/error.h"

namespace tutti::internal {
namespace {

using Pair = ShmPair;
constexpr Tag kTag = kShmTag;
constexpr std::size_t kPage = 4096;

// Whole pages of ordinary memory.
struct Pages {
  explicit Pages(std::size_t count)
      : bytes(count * kPage),
        data(static_cast<std::byte*>(
            ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    for (std::size_t i = 0; i < bytes; ++i) data[i] = at(i);
  }
  ~Pages() { ::munmap(data, bytes); }
  static std::byte at(std::size_t i) { return static_cast<std::byte>(i * 31 + i / 4096); }
  bool is_untouched(std::size_t begin, std::size_t end) const {
    for (std::size_t i = begin; i < end; ++i)
      if (data[i] != at(i)) return false;
    return true;
  }
  const std::size_t bytes;
  std::byte* const data;
};

std::string refusal(ShmRank& rank, void* data, std::size_t bytes) try {
  rank.transport.adopt(static_cast<std::byte*>(data), bytes);
  return "none";
} catch (const Error& error) {
  EXPECT_EQ(error.code, ErrorCode::invalid_argument);
  return error.what();
}

// Every way in which a buffer can lie to its pages: [begin, end) of the pages.
const std::vector<std::pair<std::size_t, std::size_t>> kBuffers{
    {0, 4 * kPage}, {64, 4 * kPage}, {0, 4 * kPage - 100}, {64, 4 * kPage - 100}, {kPage - 1, 2 * kPage + 1},
    {100, 3000},    {100, kPage + 5}};

TEST(ShmAdopted, KeepsItsContentsAndWhatLiesBeside) {
  for (const auto& [begin, end] : kBuffers) {
    Pages pages(4);
    ShmRank rank;
    auto adopted = rank.transport.adopt(pages.data + begin, end - begin);
    EXPECT_TRUE(pages.is_untouched(0, pages.bytes));
    pages.data[begin] = pages.data[end - 1] = pages.data[(begin + end) / 2] = std::byte{7};
    adopted.reset();
    EXPECT_EQ(pages.data[begin], std::byte{7});
    EXPECT_EQ(pages.data[(begin + end) / 2], std::byte{7});
    EXPECT_EQ(pages.data[end - 1], std::byte{7});
    EXPECT_TRUE(pages.is_untouched(0, begin) && pages.is_untouched(end, pages.bytes));
  }
}

// A forked child that has a page of its own sees no later change.
bool is_shared_with_a_child(std::byte* at) {
  *at = std::byte{1};
  const pid_t child = ::fork();
  if (child == 0) {
    *at = std::byte{2};
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  return *at == std::byte{2};
}

TEST(ShmAdopted, WholePagesAreSharedAndNoOthers) {
  Pages pages(4);
  ShmRank rank;
  const auto adopted = rank.transport.adopt(pages.data + 64, 3 * kPage);
  EXPECT_FALSE(is_shared_with_a_child(pages.data)) << "what lies before the buffer";
  EXPECT_FALSE(is_shared_with_a_child(pages.data + 64));
  EXPECT_TRUE(is_shared_with_a_child(pages.data + kPage));
  EXPECT_TRUE(is_shared_with_a_child(pages.data + 3 * kPage - 1));
  EXPECT_FALSE(is_shared_with_a_child(pages.data + 3 * kPage));
  EXPECT_FALSE(is_shared_with_a_child(pages.data + 3 * kPage + 64)) << "what lies behind the buffer";
}

TEST(ShmAdopted, IsSeenWhereItLies) {
  for (const auto& [begin, end] : kBuffers) {
    if (end - begin < kPage) continue;
    Pages pages(4);
    Pair pair;
    const auto adopted = pair.first.transport.adopt(pages.data + begin, end - begin);
    // The whole buffer, and one in which the first byte has been taken off. Each once more with other contents.
    for (const std::size_t less : {0, 1})
      for (const std::byte what : {std::byte{3}, std::byte{5}}) {
        pages.data[begin + less] = pages.data[end - 1] = what;
        const std::size_t bytes = end - begin - less;
        pair.to_second->send(kTag, pages.data + begin + less, bytes);
        std::span<const std::byte> here;
        ASSERT_TRUE(pair.to_first->view(kTag, bytes, here));
        ASSERT_EQ(here.size(), bytes) << "in one piece: it is lent";
        EXPECT_EQ(std::memcmp(here.data(), pages.data + begin + less, bytes), 0);
        pair.to_first->release(bytes);
        pair.to_first->flush();
        ASSERT_TRUE(pair.to_second->sent());
      }
  }
}

TEST(ShmAdopted, IsWrittenWhereItLies) {
  for (const auto& [begin, end] : kBuffers) {
    if (end - begin < kPage) continue;
    Pages pages(4);
    Pair pair;
    const std::size_t bytes = end - begin;
    const auto adopted = pair.second->transport.adopt(pages.data + begin, bytes);
    pair.to_first->receive(0, kTag, pages.data + begin, bytes);
    pair.to_first->flush();
    std::byte* const room = pair.to_second->reserve(kTag, bytes);
    ASSERT_NE(room, nullptr);
    std::fill_n(room, bytes, std::byte{9});
    pair.to_second->commit(kTag);
    ASSERT_EQ(pair.to_first->received(), 1u);
    EXPECT_EQ(std::count(pages.data + begin, pages.data + end, std::byte{9}), static_cast<std::ptrdiff_t>(bytes));
    EXPECT_TRUE(pages.is_untouched(0, begin) && pages.is_untouched(end, pages.bytes));
  }
}

// After a failure with a peer that is stopped in the middle. Other communicators may go on.
TEST(ShmAdopted, IsPrivateOnceMemoryIsKept) {
  Pages pages(4);
  Pair pair;
  auto adopted = pair.second->transport.adopt(pages.data + 64, 3 * kPage);
  pair.to_first->receive(0, kTag, pages.data + 64, 3 * kPage);
  pair.to_first->flush();
  std::byte* const room = pair.to_second->reserve(kTag, 3 * kPage);
  ASSERT_NE(room, nullptr);
  pair.second->transport.keep_memory();
  std::fill_n(room, 3 * kPage, std::byte{9});
  EXPECT_TRUE(pages.is_untouched(0, pages.bytes)) << "what a peer writes late does not arrive by itself";
  pair.to_second->commit(kTag);
  ASSERT_EQ(pair.to_first->received(), 1u);
  EXPECT_EQ(std::count(pages.data + 64, pages.data + 64 + 3 * kPage, std::byte{9}),
            static_cast<std::ptrdiff_t>(3 * kPage));
  std::fill_n(room, 3 * kPage, std::byte{1});
  adopted.reset();
  EXPECT_EQ(pages.data[2 * kPage], std::byte{9});
}

// The old adoption ends after the new one has begun.
TEST(ShmAdopted, MayBeAdoptedAgainOnceMemoryIsKept) {
  Pages pages(4);
  ShmRank rank;
  auto kept = rank.transport.adopt(pages.data + 64, 3 * kPage);
  rank.transport.keep_memory();
  EXPECT_FALSE(is_shared_with_a_child(pages.data + kPage));
  pages.data[kPage] = Pages::at(kPage);
  kept = rank.transport.adopt(pages.data + 64, 3 * kPage);
  EXPECT_TRUE(pages.is_untouched(0, pages.bytes));
  EXPECT_TRUE(is_shared_with_a_child(pages.data + kPage));
  shm::Place place;
  EXPECT_TRUE(rank.transport.own().holds(pages.data + 64, 3 * kPage, place));
  pages.data[kPage] = Pages::at(kPage);
  kept.reset();
  EXPECT_FALSE(is_shared_with_a_child(pages.data + kPage));
  pages.data[kPage] = Pages::at(kPage);
  EXPECT_TRUE(pages.is_untouched(0, pages.bytes));
}

// Whoever writes to the memory knows nothing of a failure of another communicator.
TEST(ShmAdopted, NoStoreIsLostWhileMemoryIsKept) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer takes mmap() for a write";
#endif
  constexpr int kCount = 256;
  Pages pages(kCount);
  for (int round = 0; round < 20; ++round) {
    ShmRank rank;
    const auto adopted = rank.transport.adopt(pages.data, pages.bytes);
    std::atomic<bool> stops{false}, writes{false};
    bool lost = false;
    std::thread writer([&] {
      for (unsigned value = 1; !stops; ++value)
        for (int page = 0; page < kCount; ++page) {
          auto* const at = pages.data + static_cast<std::size_t>(page) * kPage;
          const std::atomic_ref word(*reinterpret_cast<unsigned*>(at));
          if (value > 1 && word.load(std::memory_order_relaxed) != value - 1) lost = true;
          word.store(value, std::memory_order_relaxed);
          writes = true;
        }
    });
    while (!writes) std::this_thread::yield();
    rank.transport.keep_memory();
    stops = true;
    writer.join();
    ASSERT_FALSE(lost);
  }
}

TEST(ShmAdopted, IsGivenBackThoughNoDescriptorIsLeft) {
  Pages pages(4);
  ShmRank rank;
  auto adopted = rank.transport.adopt(pages.data, pages.bytes);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  adopted.reset();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(pages.is_untouched(0, pages.bytes));
  EXPECT_FALSE(is_shared_with_a_child(pages.data));
}

// What the system keeps of each mapping: its number is limited.
TEST(ShmAdopted, ManyBuffersOfOneMemoryLeaveNoMoreMappings) {
  const auto mappings = [] {
    std::ifstream maps("/proc/self/maps");
    return std::count(std::istreambuf_iterator<char>(maps), {}, '\n');
  };
  Pages pages(400);
  ShmRank rank;
  rank.transport.adopt(pages.data, kPage).reset();
  const auto before = mappings();
  for (std::size_t i = 0; i < 100; ++i) rank.transport.adopt(pages.data + 4 * i * kPage, 2 * kPage).reset();
  EXPECT_LE(mappings(), before + 20);
  EXPECT_TRUE(pages.is_untouched(0, pages.bytes));
}

TEST(ShmAdopted, WhatIsNotOrdinaryMemoryIsRefused) {
  ShmRank rank;
  EXPECT_EQ(rank.transport.adopt(nullptr, 0), nullptr);
  static const std::vector<char> text(3 * kPage, 'x');
  const int file = ::memfd_create("of the test", 0);
  ASSERT_EQ(::ftruncate(file, 3 * kPage), 0);
  void* const mapped = ::mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
  EXPECT_THAT(refusal(rank, mapped, 3 * kPage), testing::HasSubstr("of the test"));
  ::munmap(mapped, 3 * kPage);
  ::close(file);
  EXPECT_THAT(refusal(rank, mapped, 3 * kPage), testing::HasSubstr("nothing is mapped"));
  Pages pages(4);
  ::mprotect(pages.data + kPage, kPage, PROT_READ);
  EXPECT_THAT(refusal(rank, pages.data, pages.bytes), testing::HasSubstr("\"r--p\""));
  ::mprotect(pages.data + kPage, kPage, PROT_READ | PROT_WRITE);
  EXPECT_THAT(refusal(rank, Pair::symmetric(rank), Pair::kBytes), testing::HasSubstr("shared already"));
  const auto adopted = rank.transport.adopt(pages.data, pages.bytes);
  EXPECT_THAT(refusal(rank, pages.data + kPage, kPage), testing::HasSubstr("shared already"));
  EXPECT_TRUE(pages.is_untouched(0, pages.bytes));
}

TEST(ShmAdopted, MemoryThatWasFreedIsLeftAlone) {
  ShmRank rank;
  std::shared_ptr<void> adopted;
  std::byte* where = nullptr;
  {
    Pages pages(4);
    where = pages.data;
    adopted = rank.transport.adopt(pages.data, pages.bytes);
  }
  // Something else is there now, on two of the pages.
  ASSERT_EQ(::mmap(where + kPage, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            where + kPage);
  where[kPage] = std::byte{42};
  adopted.reset();
  EXPECT_EQ(where[kPage], std::byte{42});
  unsigned char is_there[2];
  EXPECT_EQ(::mincore(where, kPage, is_there), -1) << "nothing may be mapped where nothing was";
  ::munmap(where + kPage, 2 * kPage);
}

TEST(ShmAdopted, ManyTimesTakesNoMoreMemory) {
  ShmRank rank;
  Pages pages(16);
  std::uint64_t first = 0;
  for (int i = 0; i < 50; ++i) {
    const auto adopted = rank.transport.adopt(pages.data + i % 2, pages.bytes - 1);
    shm::Place place;
    ASSERT_TRUE(rank.transport.own().holds(pages.data + i % 2, pages.bytes - 1, place));
    if (i == 0) first = place.offset;
    EXPECT_EQ(place.offset, first + static_cast<std::uint64_t>(i % 2));
  }
  EXPECT_TRUE(pages.is_untouched(0, pages.bytes));
  struct stat file {};
  ASSERT_EQ(::fstat(rank.transport.own().fd(), &file), 0);
  EXPECT_LT(static_cast<std::size_t>(file.st_blocks) * 512, (std::size_t{1} << 20) + pages.bytes) << "given back";
}

TEST(ShmAdopted, MayOutliveTheTransport) {
  Pages pages(2);
  std::shared_ptr<void> adopted;
  {
    ShmRank rank;
    adopted = rank.transport.adopt(pages.data, pages.bytes);
  }
  EXPECT_TRUE(pages.is_untouched(0, pages.bytes));
  adopted.reset();
  EXPECT_TRUE(pages.is_untouched(0, pages.bytes));
  EXPECT_FALSE(is_shared_with_a_child(pages.data));
}

TEST(ShmAdopted, AForkedChildThatDropsItChangesNothing) {
  Pages pages(2);
  ShmRank rank;
  auto adopted = rank.transport.adopt(pages.data, pages.bytes);
  const pid_t child = ::fork();
  if (child == 0) {
    adopted.reset();
    pages.data[0] = std::byte{77};
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(pages.data[0], std::byte{77}) << "it is shared still";
}

}  // namespace
}  // namespace tutti::internal
