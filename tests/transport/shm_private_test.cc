// Messages that lie in private memory, which the peer reads there.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <thread>
#include <vector>

#include "copiers.h"
#include "transport/shm/private_memory.h"
#include "transport/shm/transport.h"
#include "transport/shm_pair.h"

namespace tutti::internal {
namespace {

using Pair = ShmPair;
constexpr Tag kTag = kShmTag;

// Of the same user. It is the system's decision.
bool can_read_others() {
  shm::assume_reading_is_quick(true);
  const shm::ProofWord word;
  return shm::PrivateMemory(::getpid(), word.proof()).can_be_read();
}

// So the bytes are those of the moment in which the peer looks.
TEST(ShmPrivate, APeerReadsPrivateMemoryWhereItLies) {
  if (!can_read_others()) GTEST_SKIP() << "this system lets no process read the memory of another";
  Pair pair;
  std::vector<std::byte> out(3 * shm::kFragmentBytes + 8, std::byte{1}), in(out.size());
  pair.to_first->receive(0, kTag, in.data(), in.size());  // only then does each know what the other can read
  pair.to_first->flush();
  pair.to_second->send(kTag, out.data(), out.size(), kPeer);
  EXPECT_EQ(pair.to_second->sent(), 0u);
  EXPECT_EQ(pair.to_second->published(), 0u) << "the peer may decline it";
  std::ranges::fill(out, std::byte{2});
  EXPECT_EQ(pair.to_first->received(), 1u);
  EXPECT_EQ(in, out);
  pair.to_first->flush();
  EXPECT_EQ(pair.to_second->sent(), 1u);
  EXPECT_EQ(pair.to_second->published(), 1u);
}
TEST(ShmPrivate, APeerLooksAtPrivateMemoryPieceByPiece) {
  if (!can_read_others()) GTEST_SKIP() << "this system lets no process read the memory of another";
  Pair pair;
  std::vector<std::byte> out(2 * shm::kFragmentBytes + 8, std::byte{1}), in(out.size());
  pair.to_first->flush();
  std::span<const std::byte> here;
  EXPECT_FALSE(pair.to_first->view(kTag, out.size(), here));
  pair.to_second->send(kTag, out.data(), out.size(), kPeer);
  for (std::size_t at = 0; at < out.size();) {
    std::ranges::fill(out, std::byte(at % 100));
    ASSERT_TRUE(pair.to_first->view(kTag, out.size(), here));
    ASSERT_EQ(here.size(), std::min(out.size() - at, shm::kFragmentBytes));
    EXPECT_EQ(here.front(), out[at]);
    EXPECT_EQ(here.back(), out[at]);
    EXPECT_EQ(pair.to_second->sent(), 0u);
    at += here.size();
    pair.to_first->release(here.size() / 2);
    ASSERT_TRUE(pair.to_first->view(kTag, out.size(), here)) << "the rest of the piece";
    pair.to_first->release(here.size());
  }
  pair.to_first->flush();
  EXPECT_EQ(pair.to_second->sent(), 1u);
}
TEST(ShmPrivate, PrivateMemoryThatWasWithdrawnIsNotRead) {
  if (!can_read_others()) GTEST_SKIP() << "this system lets no process read the memory of another";
  Pair pair;
  std::vector<std::byte> out(Pair::kBytes), in(Pair::kBytes, std::byte{7});
  pair.to_first->receive(0, kTag, in.data(), in.size());
  pair.to_second->send(kTag, out.data(), out.size(), kPeer);
  EXPECT_TRUE(pair.to_second->withdraw());
  EXPECT_THROW(pair.to_first->received(), ChannelClosed);
  EXPECT_EQ(in, std::vector<std::byte>(Pair::kBytes, std::byte{7}));
}
// A page in the middle is not there before the test gives it: a read of it waits in the system meanwhile.
struct SlowMemory {
  static constexpr std::size_t kPage = 4096, kBytes = 5 * kPage;
  int faults = static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK));
  std::byte* data =
      static_cast<std::byte*>(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ~SlowMemory() {
    ::munmap(data, kBytes);
    if (faults >= 0) ::close(faults);
  }
  bool begin() {
    uffdio_api api{.api = UFFD_API, .features = 0, .ioctls = 0};
    uffdio_register range{
        .range = {reinterpret_cast<std::uintptr_t>(data), kBytes}, .mode = UFFDIO_REGISTER_MODE_MISSING, .ioctls = 0};
    if (faults < 0 || ::ioctl(faults, UFFDIO_API, &api) != 0) return false;
    for (std::size_t page = 0; page < 5; ++page)
      if (page != 2) std::memset(data + page * kPage, 1, kPage);
    return ::ioctl(faults, UFFDIO_REGISTER, &range) == 0;
  }
  void await_reader() const {
    pollfd asked{.fd = faults, .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&asked, 1, 20'000), 1);
    EXPECT_EQ(asked.revents, POLLIN);
  }
  void give_page() const {
    alignas(kPage) static const std::array<std::byte, kPage> page{};
    uffdio_copy copy{.dst = reinterpret_cast<std::uintptr_t>(data) + 2 * kPage,
                     .src = reinterpret_cast<std::uintptr_t>(page.data()),
                     .len = kPage,
                     .mode = 0,
                     .copy = 0};
    EXPECT_EQ(::ioctl(faults, UFFDIO_COPY, &copy), 0);
  }
};

TEST(ShmPrivate, WhatIsReadAfterItWasWithdrawnDoesNotCount) {
  if (!can_read_others()) GTEST_SKIP() << "this system lets no process read the memory of another";
  SlowMemory out;
  if (!out.begin()) GTEST_SKIP() << "this process may not have userfaultfd()";
  Pair pair;
  std::vector<std::byte> in(SlowMemory::kBytes);
  pair.to_first->receive(0, kTag, in.data(), in.size());
  pair.to_first->flush();
  pair.to_second->send(kTag, out.data, SlowMemory::kBytes, kPeer);
  std::thread reader([&] { EXPECT_THROW(pair.to_first->received(), ChannelClosed); });
  out.await_reader();
  EXPECT_TRUE(pair.to_second->withdraw()) << "there is no turn here that it could wait for";
  out.give_page();
  reader.join();
}

// Reads as soon as the process is proved, and waits for a page meanwhile. The word then is another one, if is_another.
int failure_of_slow_read(const SlowMemory& out, bool is_another) {
  std::atomic<std::uint64_t> word{42};
  std::vector<std::byte> in(SlowMemory::kBytes);
  int failure = -1;
  std::thread reader([&] {
    const shm::PrivateMemory memory(::getpid(), {reinterpret_cast<std::uintptr_t>(&word), 42});
    failure = memory.read(in.data(), reinterpret_cast<std::uintptr_t>(out.data), SlowMemory::kBytes);
  });
  out.await_reader();
  if (is_another) word = 0;
  ::usleep(2'000);
  out.give_page();
  reader.join();
  return failure;
}

// Such a read may have been of another process that has the number by now, so the proof of before is not enough. But if
// the reader is held up between the proof and the read, the read carries the proof itself.
TEST(ShmPrivate, AReadThatTookLongIsOfTheRightProcess) {
  if (!can_read_others()) GTEST_SKIP() << "this system lets no process read the memory of another";
  int refused = 0;
  for (int round = 0; round < 20 && refused == 0; ++round)
    for (const bool is_another : {false, true}) {
      SlowMemory out;
      if (!out.begin()) GTEST_SKIP() << "this process may not have userfaultfd()";
      const int failure = failure_of_slow_read(out, is_another);
      EXPECT_TRUE(failure == 0 || (is_another && failure == ESRCH)) << failure;
      refused += failure == ESRCH;
    }
  EXPECT_GT(refused, 0);
}

// A program may write to such memory, and read it, but the system does not read it for others: as that of a device.
TEST(ShmPrivate, AMessageThatCannotBeReadAfterAllIsShownPieceByPiece) {
  if (!can_read_others()) GTEST_SKIP() << "this system lets no process read the memory of another";
  constexpr std::size_t kLong = 3 * shm::kFragmentBytes + 8;
  auto* const out =
      static_cast<std::byte*>(::mmap(nullptr, kLong, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(out, MAP_FAILED);
  for (std::size_t i = 0; i < kLong; ++i) out[i] = std::byte(i * 7 % 251);
  Pair pair;
  std::uint64_t messages = 0;
  const auto receive = [&](std::vector<std::byte>& in) {
    pair.to_first->receive(messages, kTag, in.data(), in.size());
    pair.to_second->send(kTag, out, in.size(), kPeer);
    pair.to_second->send(kTag, out, 8);  // what comes behind it waits
    std::vector<std::byte> behind(8);
    pair.to_first->receive(messages + 1, kTag, behind.data(), behind.size());
    messages += 2;
    for (int i = 0; i < 100 && pair.to_second->sent() < messages; ++i) {
      pair.to_first->progress();
      pair.to_first->flush();
      pair.to_second->progress();
    }
    EXPECT_EQ(pair.to_second->sent(), messages);
    EXPECT_EQ(std::memcmp(behind.data(), out, 8), 0);
  };
  for (const bool readable : {true, false, true, false}) {
    std::vector<std::byte> in(kLong);
    ASSERT_EQ(::mprotect(out, kLong, readable ? PROT_READ | PROT_WRITE : PROT_WRITE), 0);
    receive(in);
    EXPECT_EQ(std::memcmp(in.data(), out, kLong), 0) << readable;
  }
  // In view the rest of a message that was read in part.
  ASSERT_EQ(::mprotect(out, kLong, PROT_READ | PROT_WRITE), 0);
  std::vector<std::byte> in(kLong);
  receive(in);
  pair.to_second->send(kTag, out, kLong, kPeer);
  std::vector<std::byte> seen;
  std::span<const std::byte> here;
  for (int i = 0; i < 100 && seen.size() < kLong; ++i) {
    pair.to_second->progress();
    if (!pair.to_first->view(kTag, kLong, here)) continue;
    seen.insert(seen.end(), here.begin(), here.end());
    pair.to_first->release(here.size());
    ASSERT_EQ(::mprotect(out, kLong, PROT_WRITE), 0);
  }
  pair.to_first->flush();
  EXPECT_EQ(std::memcmp(seen.data(), out, kLong), 0);
  EXPECT_EQ(pair.to_second->sent(), messages + 1);
  ::munmap(out, kLong);
}
TEST(ShmPrivate, MemoryThatTheSystemCannotReadForOthersIsKnown) {
  if (!can_read_others()) GTEST_SKIP() << "this system lets no process read the memory of another";
  shm::ReadableMemory readable;
  const std::vector<std::byte> mine(10'000);
  EXPECT_TRUE(readable.has(mine.data(), mine.size()));
  void* const hole = ::mmap(nullptr, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(hole, MAP_FAILED);
  EXPECT_FALSE(readable.has(static_cast<std::byte*>(hole), 8192));
  ::munmap(hole, 8192);
  EXPECT_TRUE(readable.has(mine.data(), mine.size())) << "a hole says nothing of other memory";
}
// A buffer that is sent in many pieces is asked for once.
TEST(ShmPrivate, ReadablePiecesOfABufferAreRememberedAsOne) {
  if (!can_read_others()) GTEST_SKIP() << "this system lets no process read the memory of another";
  constexpr std::size_t kPiece = 4096, kPieces = 64;
  auto* const all = static_cast<std::byte*>(
      ::mmap(nullptr, kPieces * kPiece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(all, MAP_FAILED);
  shm::ReadableMemory readable;
  for (std::size_t i = 0; i < kPieces; ++i)
    EXPECT_TRUE(readable.has(all + (i % 2 == 0 ? i / 2 : kPieces - 1 - i / 2) * kPiece, kPiece));
  ASSERT_EQ(::mprotect(all, kPieces * kPiece, PROT_NONE), 0);
  for (std::size_t i = 0; i < kPieces; ++i) EXPECT_TRUE(readable.has(all + i * kPiece, kPiece)) << i;
  ::munmap(all, kPieces * kPiece);
}

// Waits until it is told to go, and then is another program under the same number.
TEST(ShmPrivate, IsReadOfTheRightProcessOnly) {
  int go[2];
  ASSERT_EQ(::pipe(go), 0);
  auto* const pages =
      static_cast<std::byte*>(::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(pages, MAP_FAILED);
  std::memset(pages, 1, 8192);
  ASSERT_EQ(::munmap(pages + 4096, 4096), 0);
  const auto page_end = reinterpret_cast<std::uintptr_t>(pages) + 4096;
  const std::byte mine[4]{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  const shm::ProofWord word;
  const shm::Proof proof = word.proof();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    char told = 0;
    ::close(go[1]);
    [[maybe_unused]] const ssize_t got = ::read(go[0], &told, 1);
    ::execl("/bin/sleep", "sleep", "60", nullptr);
    ::_exit(1);
  }
  const shm::PrivateMemory childs(child, proof);
  if (!can_read_others()) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    GTEST_SKIP() << "this system lets no process read the memory of another";
  }
  ASSERT_TRUE(childs.can_be_read());
  std::byte seen[4]{};
  EXPECT_EQ(childs.read(seen, reinterpret_cast<std::uintptr_t>(mine), sizeof seen), 0);
  EXPECT_EQ(std::memcmp(seen, mine, sizeof seen), 0);
  EXPECT_EQ(childs.read(seen, 4096, sizeof seen), EFAULT);
  EXPECT_FALSE(shm::PrivateMemory(child, {proof.at, proof.value + 1}).can_be_read());
  EXPECT_FALSE(shm::PrivateMemory(child, {8, proof.value}).can_be_read());
  EXPECT_FALSE(shm::PrivateMemory(child, {page_end - 4, 0x01010101}).can_be_read()) << "half of it";
  EXPECT_FALSE(shm::PrivateMemory(0, proof).can_be_read()) << "a peer of another namespace of processes";
  const std::atomic<std::uint32_t> stop{0};
  const auto write = [&] { return childs.write(mine, reinterpret_cast<std::uintptr_t>(mine), sizeof mine, stop); };
  if (childs.can_be_written()) {
    EXPECT_EQ(write(), 0);
    EXPECT_EQ(shm::PrivateMemory(child, {proof.at, proof.value + 1}).write(mine, page_end - 4, 4, stop), ESRCH);
  }
  ::close(go[0]);
  ::close(go[1]);
  const auto is_another = [&] { return childs.read(seen, reinterpret_cast<std::uintptr_t>(mine), 1) == ESRCH; };
  for (int i = 0; i < 1000 && !is_another(); ++i) ::usleep(10'000);
  EXPECT_TRUE(is_another());
  EXPECT_EQ(::kill(child, 0), 0) << "its number is in use";
  ::usleep(2'000);  // a proof holds for less
  EXPECT_NE(write(), 0);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(is_another());
}

}  // namespace
}  // namespace tutti::internal
