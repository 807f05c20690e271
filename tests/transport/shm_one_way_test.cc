// A ring grows where a rank only sends to the peer, so that it gets further before it waits for a reader.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstddef>
#include <vector>

#include "copiers.h"
#include "transport/shm_reuse.h"

namespace tutti::internal {
namespace {

constexpr std::size_t kGrownBytes = std::size_t{1} << 20;

struct ShmOneWay : testing::Test {
  ShmPair pair{shm::RingBytes{shm::kMinRingBytes, kGrownBytes}};
  const std::size_t bytes = shm::fragment_bytes(shm::kMinRingBytes);
  const Bytes whole = message(bytes, 1);

  void exchange(unsigned times, Channel& from, Channel& to) {
    for (unsigned i = 0; i < times; ++i) {
      send(from, whole);
      read(to, whole);
    }
  }
  // How many messages have room while the peer reads nothing. It reads them in the end.
  std::size_t ahead() {
    const std::uint64_t before = pair.to_second->sent();
    std::uint64_t sent = 0;
    for (; pair.to_second->sent() - before == sent; ++sent) pair.to_second->send(kShmTag, whole.data(), whole.size());
    for (std::uint64_t i = 0; i < sent; ++i) {
      pair.to_second->progress();
      read(*pair.to_first, whole);
    }
    return sent - 1;
  }
};

TEST_F(ShmOneWay, ItIsShortAtFirst) { EXPECT_EQ(ahead(), shm::kMinRingBytes / bytes); }

TEST_F(ShmOneWay, ItGrowsWhileOneRankOnlySends) {
  exchange(shm::kRow, *pair.to_second, *pair.to_first);
  EXPECT_EQ(ahead(), kGrownBytes / bytes);
}

TEST_F(ShmOneWay, ItIsShortAgainOnceThePeerSendsToo) {
  exchange(shm::kRow, *pair.to_second, *pair.to_first);
  ASSERT_EQ(ahead(), kGrownBytes / bytes);
  for (unsigned i = 0; i < shm::kRow; ++i) {
    exchange(1, *pair.to_first, *pair.to_second);
    exchange(1, *pair.to_second, *pair.to_first);
  }
  EXPECT_EQ(ahead(), shm::kMinRingBytes / bytes);
}

// So that it may fetch the lines for that while it reads.
TEST_F(ShmOneWay, ARankKnowsWhetherItWillWriteWhereItReads) {
  const auto shown = [&](const std::byte* data, std::size_t of, bool at_once) {
    pair.to_second->send(kShmTag, data, of);
    pair.to_second->flush();
    std::span<const std::byte> here;
    EXPECT_TRUE(at_once ? pair.to_first->look_at_once(kShmTag, of) != nullptr : pair.to_first->view(kShmTag, of, here));
    const bool will_rewrite = pair.to_first->will_rewrite();
    at_once ? pair.to_first->take_at_once() : pair.to_first->release(of);
    return will_rewrite;
  };
  const auto is_answered = [&](const std::byte* data, std::size_t of, bool at_once) {
    exchange(1, *pair.to_first, *pair.to_second);
    return shown(data, of, at_once);
  };
  EXPECT_FALSE(shown(whole.data(), bytes, false)) << "it has sent nothing that it could keep space for";
  EXPECT_TRUE(is_answered(whole.data(), bytes, false));
  EXPECT_FALSE(shown(whole.data(), bytes, false)) << "it keeps the one that it needs";
  EXPECT_TRUE(is_answered(whole.data(), bytes, true));
  EXPECT_FALSE(shown(whole.data(), bytes, true));
  EXPECT_FALSE(is_answered(whole.data(), 8, false)) << "in a line, not in a ring";
  EXPECT_FALSE(is_answered(whole.data(), 8, true));
  EXPECT_FALSE(is_answered(ShmPair::symmetric(pair.first), ShmPair::kBytes, false)) << "memory of the peer";
  EXPECT_TRUE(is_answered(whole.data(), bytes, true));
}

// Messages that go at once do not wait for memory, and the next one that does not brings it.
TEST_F(ShmOneWay, ItGrowsWhereMessagesGoAtOnce) {
  exchange(1, *pair.to_second, *pair.to_first);
  unsigned sent = 0;
  for (; sent < 3 * shm::kMinRingBytes / kShort && pair.to_second->prepare_at_once(whole.data(), kShort, kEach);
       ++sent) {
    pair.to_second->send_at_once(kShmTag, whole.data(), kShort);
    read(*pair.to_first, Bytes(whole.begin(), whole.begin() + kShort));
  }
  EXPECT_LT(sent, 3 * shm::kMinRingBytes / kShort) << "there is no memory for more yet";
  const std::byte* const lent = ShmPair::symmetric(pair.first);
  pair.to_second->send(kShmTag, lent, ShmPair::kBytes);  // which needs no ring
  read(*pair.to_first, Bytes(lent, lent + ShmPair::kBytes));
  EXPECT_TRUE(pair.to_second->prepare_at_once(whole.data(), kShort, kEach));
  EXPECT_GE(ahead(), kGrownBytes / bytes - 1) << "short messages may have left a gap too short for a long one";
}

// As a memory limit of a container: what has been claimed stays, and there is no more.
class NoMoreMemory {
 public:
  explicit NoMoreMemory(std::size_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &now);
  }
  ~NoMoreMemory() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  NoMoreMemory(const NoMoreMemory&) = delete;
  NoMoreMemory& operator=(const NoMoreMemory&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int) = std::signal(SIGXFSZ, SIG_IGN);
};

TEST_F(ShmOneWay, ItStaysShortWhereThereIsNoMemory) {
  exchange(1, *pair.to_second, *pair.to_first);
  const NoMoreMemory full(shm::kLanesOffset + shm::kMinRingBytes);
  exchange(shm::kRow, *pair.to_second, *pair.to_first);
  EXPECT_EQ(ahead(), shm::kMinRingBytes / bytes);
  EXPECT_TRUE(pair.to_second->prepare_at_once(whole.data(), kShort, kEach)) << "that is tried once";
}

}  // namespace
}  // namespace tutti::internal
