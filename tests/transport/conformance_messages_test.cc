// Messages arrive: whole, in order, by every way of sending and receiving.
#include "transport/conformance.h"

namespace tutti::internal {
namespace {

INSTANTIATE_TEST_SUITE_P(Transports, Conformance, testing::ValuesIn(all_connections()),
                         [](const auto& kind) { return std::string(kind.param.name); });

TEST_P(Conformance, EverySizeArrivesInAPostedReceive) {
  Ends ends = open();
  const auto side = [](Channel& channel, std::uint64_t first_out, std::uint64_t first_in) {
    std::uint64_t count = 0;
    for (const std::size_t bytes : kSizes) {
      const Bytes out = pattern(first_out + count, bytes);
      Bytes in(bytes);
      send(channel, first_out + count, out);
      receive(channel, count, in, tag_of(first_in + count));
      ++count;
      wait_for(channel, count, count);
      EXPECT_TRUE(same(in, pattern(first_in + count - 1, bytes))) << bytes;
    }
  };
  on_two_threads([&] { side(*ends.first, 0, 1000); }, [&] { side(*ends.second, 1000, 0); });
}

TEST_P(Conformance, EverySizeIsSeenInAView) {
  Ends ends = open();
  on_two_threads(
      [&] {
        std::uint64_t count = 0;
        for (const std::size_t bytes : kSizes) {
          const Bytes out = pattern(count, bytes);
          send(*ends.first, count++, out);
          wait_sent(*ends.first, count);
        }
      },
      [&] {
        std::uint64_t count = 0;
        for (const std::size_t bytes : kSizes) {
          EXPECT_TRUE(same(look(*ends.second, count, bytes), pattern(count, bytes))) << bytes;
          ++count;
        }
        EXPECT_EQ(ends.second->received(), 0u) << "views do not count as received";
      });
}

TEST_P(Conformance, AViewIsReleasedInOddPieces) {
  Ends ends = open();
  const std::size_t sizes[] = {1, 50, 4099, 70001, 600001};
  on_two_threads(
      [&] {
        std::vector<Bytes> out;
        for (const std::size_t bytes : sizes) out.push_back(pattern(out.size(), bytes));
        for (std::uint64_t i = 0; i < out.size(); ++i) send(*ends.first, i, out[i]);
        wait_sent(*ends.first, out.size());
      },
      [&] {
        std::uint64_t count = 0;
        for (const std::size_t bytes : sizes) {
          EXPECT_TRUE(same(look(*ends.second, count, bytes, bytes / 61 + 3), pattern(count, bytes))) << bytes;
          ++count;
        }
      });
}

// What a reduction needs: an element that was cut in two becomes whole without releasing its beginning.
TEST_P(Conformance, AViewGrowsUntilWhatIsHereSuffices) {
  constexpr std::size_t kBytes = 800'000, kElement = 8;
  Ends ends = open();
  on_two_threads(
      [&] {
        const Bytes out = pattern(0, kBytes);
        send(*ends.first, 0, out);
        wait_sent(*ends.first, 1);
      },
      [&] {
        Bytes seen;
        while (seen.size() < kBytes) {
          std::span<const std::byte> here;
          const std::size_t enough = std::min(kElement, kBytes - seen.size());
          wait_until({ends.second.get()},
                     [&] { return ends.second->view(tag_of(0), kBytes, here) && here.size() >= enough; });
          const std::size_t whole = here.size() >= kElement ? here.size() / kElement * kElement : here.size();
          seen.insert(seen.end(), here.begin(), here.begin() + static_cast<std::ptrdiff_t>(whole));
          ends.second->release(whole);
        }
        ends.second->flush();
        EXPECT_TRUE(same(seen, pattern(0, kBytes)));
      });
}

TEST_P(Conformance, LargeMessagesBothWaysAtOnceDoNotDeadlock) {
  const std::size_t bytes = GetParam().quick ? (12u << 20) + 5 : (2u << 20) + 5;
  Ends ends = open();
  const auto side = [&](Channel& channel, std::uint64_t out, std::uint64_t in) {
    const Bytes data = pattern(out, bytes);
    send(channel, out, data);
    Bytes filled(bytes);
    receive(channel, 0, filled, tag_of(in));
    wait_for(channel, 1, 1);
    EXPECT_TRUE(same(filled, pattern(in, bytes)));
    send(channel, out, data);
    EXPECT_TRUE(same(look(channel, in, bytes), pattern(in, bytes)));
    wait_sent(channel, 2);
  };
  on_two_threads([&] { side(*ends.first, 0, 1); }, [&] { side(*ends.second, 1, 0); });
}

TEST_P(Conformance, AReceiveMayBePostedBeforeOrAfterTheSend) {
  Ends ends = open();
  for (std::uint64_t message = 0; message < 8; ++message) {
    const Bytes out = pattern(message, 300);
    Bytes in(300);
    const bool receive_first = message % 2 == 0;
    if (receive_first) receive(*ends.second, message, in);
    for (int i = 0; i < 10; ++i) ends.second->progress();
    send(*ends.first, message, out);
    if (!receive_first) receive(*ends.second, message, in);
    wait_until({ends.first.get(), ends.second.get()},
               [&] { return ends.second->received() == message + 1 && ends.first->sent() == message + 1; });
    EXPECT_TRUE(same(in, out));
  }
}

TEST_P(Conformance, AViewShowsTheMessageAfterThePostedReceives) {
  Ends ends = open();
  on_two_threads(
      [&] {
        std::vector<Bytes> out;
        for (std::uint64_t i = 0; i < 5; ++i) out.push_back(pattern(i, 100 + 40'000 * i));
        for (std::uint64_t i = 0; i < 5; ++i) send(*ends.first, i, out[i]);
        wait_sent(*ends.first, 5);
      },
      [&] {
        std::vector<Bytes> in;
        for (std::uint64_t i = 0; i < 5; ++i) in.emplace_back(100 + 40'000 * i);
        for (const std::uint64_t i : {0, 1}) receive(*ends.second, i, in[i]);
        in[2] = look(*ends.second, 2, in[2].size());
        wait_received(*ends.second, 2);
        std::span<const std::byte> here;
        ends.second->view(tag_of(3), in[3].size(), here);  // whether it is here or not
        ends.second->receive(4, tag_of(4), in[4].data(), in[4].size());
        in[3] = look(*ends.second, 3, in[3].size());
        wait_received(*ends.second, 3);
        for (std::uint64_t i = 0; i < 5; ++i) EXPECT_TRUE(same(in[i], pattern(i, in[i].size()))) << i;
      });
}

TEST_P(Conformance, AReceivePostedAheadLeavesTheMessagesBeforeItToViews) {
  Ends ends = open();
  on_two_threads(
      [&] {
        std::vector<Bytes> out;
        for (std::uint64_t i = 0; i < 6; ++i) out.push_back(pattern(i, 30'000 * i));
        for (std::uint64_t i = 0; i < 6; ++i) send(*ends.first, i, out[i]);
        wait_sent(*ends.first, 6);
      },
      [&] {
        std::vector<Bytes> in;
        for (std::uint64_t i = 0; i < 6; ++i) in.emplace_back(30'000 * i);
        for (const std::uint64_t i : {1, 4, 5}) ends.second->receive(i, tag_of(i), in[i].data(), in[i].size());
        for (const std::uint64_t i : {0, 2, 3}) in[i] = look(*ends.second, i, in[i].size());
        wait_received(*ends.second, 3);
        for (std::uint64_t i = 0; i < 6; ++i) EXPECT_TRUE(same(in[i], pattern(i, in[i].size()))) << i;
      });
}

TEST_P(Conformance, ThousandsOfMessagesMayBeLentAhead) {
  const std::uint64_t count = GetParam().quick ? 20'000 : 2'000;
  Ends ends = open();
  std::vector<std::uint64_t> out(count), in(count, ~0ull);
  const auto bytes_of = [](std::uint64_t& value) { return reinterpret_cast<std::byte*>(&value); };
  on_two_threads(
      [&] {
        for (std::uint64_t i = 0; i < count; ++i) {
          out[i] = i * i;
          ends.first->send(tag_of(i), bytes_of(out[i]), sizeof out[i]);
        }
        wait_sent(*ends.first, count);
      },
      [&] {
        for (std::uint64_t i = 0; i < count; ++i) ends.second->receive(i, tag_of(i), bytes_of(in[i]), sizeof in[i]);
        wait_received(*ends.second, count);
      });
  EXPECT_EQ(in, out);
}

TEST_P(Conformance, MessagesWaitForAnEndThatIsMadeLater) {
  auto first = connection_->open(0, 9);
  const Bytes out = pattern(0, 100), back = pattern(1, 50);
  Bytes in(100), answer(50);
  send(*first, 0, out);
  receive(*first, 0, answer, tag_of(1));
  for (int i = 0; i < 10; ++i) first->progress();
  EXPECT_EQ(first->received(), 0u);
  auto second = connection_->open(1, 9);
  send(*second, 1, back);
  receive(*second, 0, in);
  wait_until({first.get(), second.get()}, [&] {
    return first->received() == 1 && second->received() == 1 && first->sent() == 1 && second->sent() == 1;
  });
  EXPECT_TRUE(same(in, out));
  EXPECT_TRUE(same(answer, back));
}

}  // namespace
}  // namespace tutti::internal
