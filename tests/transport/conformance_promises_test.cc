// What a channel promises beyond delivery: counts, loans, credits, checks, ends and wake-ups.
#include <atomic>
#include <cstring>
#include <optional>
#include <random>

#include "transport/conformance.h"

namespace tutti::internal {
namespace {

TEST_P(Conformance, CountsGrowOneByOneAndOnlyForWhatHappened) {
  Ends ends = open();
  EXPECT_EQ(ends.first->sent(), 0u);
  EXPECT_EQ(ends.second->received(), 0u);
  Bytes in(10);
  receive(*ends.second, 0, in);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(ends.second->received(), 0u);
  const Bytes out = pattern(0, 10);
  for (std::uint64_t message = 0; message < 3; ++message) {
    if (message > 0) receive(*ends.second, message, in);
    send(*ends.first, message, out);
    wait_until({ends.first.get(), ends.second.get()},
               [&] { return ends.second->received() + ends.first->sent() == 2 * (message + 1); });
    EXPECT_EQ(ends.second->received(), message + 1);
  }
}

// Messages that are sent at once or lent, and taken at once or received, in every mixture.
TEST_P(Conformance, AShortMessageGoesAtOnceOrNothingHappens) {
  Ends ends = open();
  const std::optional<std::size_t> most = ends.first->most_at_once();
  EXPECT_EQ(most, ends.second->most_at_once());
  std::mt19937 random(5);
  int sent = 0, taken = 0, received = 0;
  for (std::uint64_t message = 0; message < 600; ++message) {
    const std::size_t bytes = kSizes[random() % 12];
    const Bytes out = pattern(message, bytes);
    Bytes in(bytes, std::byte{0xee});
    const bool is_short = most >= bytes;
    EXPECT_TRUE(!is_short || ends.second->look_at_once(tag_of(message), bytes) == nullptr) << "of what was not sent";
    const bool at_once = random() % 2 == 0 && is_short && ends.first->prepare_at_once(out.data(), bytes);
    sent += at_once;
    if (at_once) {
      ends.first->send_at_once(tag_of(message), out.data(), bytes);
      EXPECT_EQ(ends.first->sent(), message + 1);
    } else {
      send(*ends.first, message, out);
    }
    const bool looks = random() % 2 == 0 && is_short;
    const std::byte* shown = nullptr;
    for (int look = 0; looks && shown == nullptr && look < 100; ++look) {
      EXPECT_EQ(ends.second->look_at_once(tag_of(message + 1), bytes), nullptr) << "of another call";
      EXPECT_EQ(ends.second->look_at_once(tag_of(message), bytes == 0 ? 1 : bytes - 1), nullptr) << "of another length";
      shown = ends.second->look_at_once(tag_of(message), bytes);
    }
    if (shown != nullptr) {
      if (bytes > 0) std::memcpy(in.data(), shown, bytes);
      ends.second->take_at_once();
      ++taken;
    } else {
      receive(*ends.second, message, in);
      ++received;
    }
    wait_until({ends.first.get(), ends.second.get()}, [&] {
      return ends.second->received() == static_cast<std::uint64_t>(received) && ends.first->sent() == message + 1;
    });
    ASSERT_TRUE(same(in, out)) << message;
  }
  EXPECT_TRUE(!most || (sent > 0 && taken > 0)) << "a transport that says so does it";
}

// Nobody takes them: at some time there is no room, and each one arrives nevertheless.
TEST_P(Conformance, ShortMessagesAreSentAtOnceAsLongAsThereIsRoom) {
  Ends ends = open();
  const std::size_t longest = ends.first->most_at_once().value_or(8);
  const Bytes first = pattern(0, longest);
  send(*ends.first, 0, first);
  Bytes in(longest);
  receive(*ends.second, 0, in);
  wait_until({ends.first.get(), ends.second.get()}, [&] { return ends.second->received() == 1; });
  const auto length_of = [&](std::uint64_t message) { return message % 4 == 3 ? longest : std::size_t{8}; };
  std::uint64_t number = 1;
  for (; number < 10'000; ++number) {
    const Bytes next = pattern(number, length_of(number));
    if (!ends.first->prepare_at_once(next.data(), next.size())) break;
    ends.first->send_at_once(tag_of(number), next.data(), next.size());
  }
  EXPECT_TRUE(longest == 8 || number > 4) << "nor the longest one that goes at once";
  EXPECT_LT(number, 10'000u) << "a peer that takes nothing must hold up the sender";
  for (std::uint64_t message = 1; message < number; ++message) {
    in.resize(length_of(message));
    receive(*ends.second, message, in);
    wait_until({ends.first.get(), ends.second.get()}, [&] { return ends.second->received() == message + 1; });
    ASSERT_TRUE(same(in, pattern(message, in.size()))) << message;
  }
}

TEST_P(Conformance, ReservedMemoryDelivers) {
  Ends ends = open();
  int offered = 0;
  for (std::uint64_t message = 0; message < 60; ++message) {
    const std::size_t bytes = kSizes[message % 12] % 100'000;
    const Bytes out = pattern(message, bytes);
    Bytes in(bytes, std::byte{0xee});
    receive(*ends.second, message, in);
    ends.second->progress();
    std::byte* at = ends.first->reserve(tag_of(message), bytes);
    if (at) {
      ++offered;
      if (bytes > 0) std::memcpy(at, out.data(), bytes);
      ends.first->commit(tag_of(message));
      EXPECT_EQ(ends.first->sent(), message + 1) << "a committed message counts as sent";
    } else {
      send(*ends.first, message, out);
    }
    wait_until({ends.first.get(), ends.second.get()},
               [&] { return ends.second->received() == message + 1 && ends.first->sent() == message + 1; });
    EXPECT_TRUE(same(in, out));
  }
  RecordProperty("offered", offered);
}

TEST_P(Conformance, AReservationForAnotherCallTouchesNoMemoryOfThisOne) {
  Ends ends = open();
  Bytes in(100, std::byte{0x5a});
  receive(*ends.second, 0, in);
  ends.second->progress();
  std::byte* at = ends.first->reserve(tag_of(1), 100);
  if (at) {
    std::memset(at, 0, 100);
    ends.first->commit(tag_of(1));
    EXPECT_THROW(wait_received(*ends.second, 1), TagMismatch);
  }
  EXPECT_TRUE(same(in, Bytes(100, std::byte{0x5a})));
}

// Where sent() counts a message that nobody has asked for, its bytes must be safe somewhere else.
TEST_P(Conformance, MemoryGivenBackMayBeOverwritten) {
  Ends ends = open();
  for (std::uint64_t message = 0; message < 20; ++message) {
    const std::size_t bytes = 1 + 4000 * message;
    Bytes out = pattern(message, bytes), in(bytes);
    send(*ends.first, message, out);
    for (int i = 0; i < 100 && ends.first->sent() <= message; ++i) ends.first->progress();
    const bool back = ends.first->sent() > message;
    if (back) out.assign(bytes, std::byte{0xaa});
    receive(*ends.second, message, in);
    wait_until({ends.first.get(), ends.second.get()},
               [&] { return ends.first->sent() + ends.second->received() == 2 * (message + 1); });
    EXPECT_TRUE(same(in, pattern(message, bytes)));
  }
}

TEST_P(Conformance, AnUnreadMessageHoldsUpNoOtherCommunicator) {
  const std::size_t large = 16u << 20;
  Ends unread = open(1), other = open(2);
  const Bytes flood = pattern(0, large);
  send(*unread.first, 0, flood);
  send(*unread.second, 0, flood);
  const auto side = [](Channel& busy, Channel& channel, std::uint64_t out, std::uint64_t in) {
    for (std::uint64_t i = 0; i < 50; ++i) {
      const Bytes data = pattern(out + i, 5000 * (i % 4));
      Bytes filled(data.size());
      send(channel, out + i, data);
      receive(channel, i, filled, tag_of(in + i));
      busy.progress();
      wait_for(channel, i + 1, i + 1);
      EXPECT_TRUE(same(filled, pattern(in + i, filled.size())));
    }
  };
  on_two_threads([&] { side(*unread.first, *other.first, 0, 100); },
                 [&] { side(*unread.second, *other.second, 100, 0); });
  EXPECT_EQ(unread.first->sent(), 0u) << "no transport takes 16 MiB that nobody has asked for";
}

TEST_P(Conformance, AnotherTagIsRefusedBeforeMemoryIsTouched) {
  std::uint64_t communicator = 0;
  for (const std::size_t bytes : {8u, 100'000u}) {
    for (const bool by_view : {false, true}) {
      Ends ends = open(++communicator);
      const Bytes out = pattern(0, bytes);
      Bytes in(bytes, std::byte{0x5a});
      std::span<const std::byte> here;
      if (!by_view) receive(*ends.second, 0, in, tag_of(7));
      send(*ends.first, 3, out);
      try {
        wait_until({ends.first.get(), ends.second.get()},
                   [&] { return by_view ? ends.second->view(tag_of(7), bytes, here) : ends.second->received() > 0; });
        ADD_FAILURE() << "not noticed";
      } catch (const TagMismatch& mismatch) {
        EXPECT_EQ(mismatch.peer, 0);
        EXPECT_EQ(mismatch.mine, tag_of(7));
        EXPECT_EQ(mismatch.theirs, tag_of(3));
      }
      EXPECT_EQ(in, Bytes(bytes, std::byte{0x5a}));
    }
  }
}

TEST_P(Conformance, AnotherLengthIsRefusedBeforeMemoryIsTouched) {
  std::uint64_t communicator = 0;
  for (const std::size_t bytes : {0u, 9u, 100'000u}) {
    for (const bool by_view : {false, true}) {
      Ends ends = open(++communicator);
      const Bytes out = pattern(0, bytes + 1);
      Bytes in(bytes, std::byte{0x5a});
      std::span<const std::byte> here;
      if (!by_view) receive(*ends.second, 0, in);
      send(*ends.first, 0, out);
      try {
        wait_until({ends.first.get(), ends.second.get()},
                   [&] { return by_view ? ends.second->view(tag_of(0), bytes, here) : ends.second->received() > 0; });
        ADD_FAILURE() << "not noticed";
      } catch (const LengthMismatch& mismatch) {
        EXPECT_EQ(mismatch.peer, 0);
        EXPECT_EQ(mismatch.mine_bytes, bytes);
        EXPECT_EQ(mismatch.theirs_bytes, bytes + 1);
      }
      EXPECT_EQ(in, Bytes(bytes, std::byte{0x5a}));
    }
  }
}

TEST_P(Conformance, WhoeverWaitsForAPeerThatHasGoneIsTold) {
  if (!GetParam().notices_close) return;
  std::uint64_t communicator = 0;
  for (const bool by_view : {false, true}) {
    Ends ends = open(++communicator);
    const Bytes out = pattern(0, 100);
    Bytes in(100);
    send(*ends.second, 0, out);
    receive(*ends.first, 0, in);
    wait_until({ends.first.get(), ends.second.get()},
               [&] { return ends.first->received() == 1 && ends.second->sent() == 1; });
    ends.second.reset();
    for (int i = 0; i < 20; ++i) EXPECT_NO_THROW(ends.first->progress()) << "nobody waits for anything";
    std::span<const std::byte> here;
    if (!by_view) receive(*ends.first, 1, in);
    try {
      wait_until({ends.first.get()},
                 [&] { return by_view ? ends.first->view(tag_of(1), 100, here) : ends.first->received() > 1; });
      ADD_FAILURE() << "not noticed";
    } catch (const ChannelClosed& closed) {
      EXPECT_EQ(closed.peer, 1);
      EXPECT_FALSE(closed.why.empty());
    }
  }
}

// Nothing of it is seen, or it is seen elsewhere.
TEST_P(Conformance, WhatIsWithdrawnIsNotTouched) {
  Ends ends = open();
  const Bytes out = pattern(0, 100'000);
  Bytes in(100'000);
  send(*ends.first, 0, out);
  receive(*ends.first, 0, in);
  EXPECT_TRUE(ends.first->withdraw());
  send(*ends.second, 0, out);
  std::span<const std::byte> here;
  try {
    for (int i = 0; i < 100; ++i) {
      ends.second->progress();
      if (!ends.second->view(tag_of(0), out.size(), here) || here.empty()) continue;
      EXPECT_TRUE(here.data() + here.size() <= out.data() || here.data() >= out.data() + out.size());
    }
  } catch (const ChannelClosed& closed) {
    EXPECT_EQ(closed.peer, 0);
  }
  EXPECT_TRUE(same(in, Bytes(in.size())));
}

TEST_P(Conformance, WithdrawingWaitsForThePeersTurn) {
  // No turn of a peer's touches anything there.
  if (connection_->transport(0).name() == "tcp" || connection_->transport(0).name() == "verbs") return;
  Ends ends = open();
  const Bytes out = pattern(0, 1000);
  send(*ends.first, 0, out);
  std::span<const std::byte> here;
  wait_until({ends.first.get(), ends.second.get()}, [&] { return ends.second->view(tag_of(0), out.size(), here); });
  connection_->transport(1).begin_turn();
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(ends.first->withdraw());
  connection_->transport(1).end_turn();
  EXPECT_TRUE(ends.first->withdraw());
  connection_->transport(1).begin_turn();
  EXPECT_TRUE(ends.first->withdraw()) << "a later turn does not find it";
  connection_->transport(1).end_turn();
}

TEST_P(Conformance, AMessageThatNobodyClaimedIsReported) {
  Ends ends = open();
  Tag tag;
  EXPECT_FALSE(ends.second->unclaimed(tag));
  const Bytes out = pattern(0, 40);
  Bytes in(40);
  send(*ends.first, 0, out);
  send(*ends.first, 1, out);
  receive(*ends.second, 0, in);
  wait_received(*ends.second, 1);
  wait_until({ends.first.get()}, [&] { return ends.second->unclaimed(tag); });
  EXPECT_EQ(ends.second->received(), 1u);
  EXPECT_EQ(tag, tag_of(1));
  EXPECT_EQ(look(*ends.second, 1, 40), out) << "looking does not claim";
  EXPECT_FALSE(ends.second->unclaimed(tag));
}

// --- sleeping --------------------------------------------------------------------------------------------------------

// As the executor waits: says that it will sleep, looks once more, sleeps.
void sleep_until(Transport& transport, Sleeper& sleeper, Channel& channel, const std::function<bool()>& done) {
  while (!done()) {
    channel.flush();
    transport.before_sleep();
    const bool ready = done();
    const auto start = std::chrono::steady_clock::now();
    if (!ready) sleeper.sleep(std::chrono::seconds(20));
    transport.after_sleep();
    if (std::chrono::steady_clock::now() - start > std::chrono::seconds(15))
      throw std::runtime_error("a wake-up was lost");
    if (ready) return;
  }
}

TEST_P(Conformance, ASleeperIsWokenByEveryMessage) {
  const std::uint64_t turns = GetParam().quick ? 2000 : 500;
  Ends ends = open();
  const auto side = [&](int rank, Channel& channel) {
    std::mt19937 random(rank);
    for (std::uint64_t turn = 0; turn < turns; ++turn) {
      std::uint64_t out = turn, in = 0;
      // Off balance by a random moment, so that sends fall into every instant of the peer's going to sleep.
      for (unsigned spin = random() % 2000; spin > 0; --spin) std::atomic_signal_fence(std::memory_order_seq_cst);
      channel.receive(turn, tag_of(turn), reinterpret_cast<std::byte*>(&in), sizeof in);
      channel.send(tag_of(turn), reinterpret_cast<const std::byte*>(&out), sizeof out);
      sleep_until(connection_->transport(rank), connection_->sleeper(rank), channel,
                  [&] { return channel.received() + channel.sent() == 2 * (turn + 1); });
      ASSERT_EQ(in, turn);
    }
  };
  on_two_threads([&] { side(0, *ends.first); }, [&] { side(1, *ends.second); });
}

TEST_P(Conformance, SleepersMoveLargeMessagesToTheirEnd) {
  const std::size_t bytes = GetParam().quick ? (5u << 20) + 1 : (1u << 20) + 1;
  Ends ends = open();
  const auto side = [&](int rank, Channel& channel) {
    Transport& transport = connection_->transport(rank);
    const Bytes out = pattern(rank, bytes);
    for (std::uint64_t turn = 0; turn < 3; ++turn) {
      Bytes in(bytes);
      channel.send(tag_of(0), out.data(), bytes);
      channel.receive(turn, tag_of(0), in.data(), bytes);
      sleep_until(transport, connection_->sleeper(rank), channel,
                  [&] { return channel.received() + channel.sent() == 2 * (turn + 1); });
      EXPECT_TRUE(same(in, pattern(1 - rank, bytes)));
    }
    channel.send(tag_of(0), out.data(), bytes);
    std::size_t seen = 0;
    while (seen < bytes) {
      std::span<const std::byte> here;
      sleep_until(transport, connection_->sleeper(rank), channel, [&] {
        channel.sent();
        return channel.view(tag_of(0), bytes, here);
      });
      seen += here.size();
      channel.release(here.size());
    }
    sleep_until(transport, connection_->sleeper(rank), channel, [&] { return channel.sent() == 4; });
  };
  on_two_threads([&] { side(0, *ends.first); }, [&] { side(1, *ends.second); });
}

}  // namespace
}  // namespace tutti::internal
