// Messages over a verbs channel between memory that is registered and memory that is not, of the sizes at which the
// way changes, on devices with other limits.
#include <random>

#include "brief.h"
#include "transport/verbs_ends.h"

namespace tutti::internal {
namespace {

using verbs::kLargeBytes;
using verbs::kMaxFragment;
using verbs::kRingBytes;

constexpr std::size_t kMinLent = 2048;    // sender.cc
constexpr std::size_t kHeaderBytes = 64;  // header.h
constexpr std::size_t kMaxOffered = verbs::kMaxOffered;

std::vector<std::size_t> sizes() {
  std::vector<std::size_t> sizes = {0};
  for (const std::size_t edge :
       {std::size_t{1}, std::size_t{512} - kHeaderBytes, std::size_t{512}, kMinLent, kLargeBytes,
        kMaxFragment - kHeaderBytes, kMaxFragment, 2 * kMaxFragment, kRingBytes, 3 * kRingBytes})
    for (const std::size_t bytes : {edge - 1, edge, edge + 1}) sizes.push_back(bytes);
  return sizes;
}

struct Device {
  const char* name;
  FakeLimits limits;
};

class VerbsMessages : public testing::TestWithParam<Device> {
 protected:
  VerbsEnds ends_{GetParam().limits};
};
INSTANTIATE_TEST_SUITE_P(
    Devices, VerbsMessages,
    testing::Values(Device{"usual", {}}, Device{"nothing_inline", {.most_inline = 0}},
                    Device{"much_inline", {.most_inline = 512}}, Device{"small_writes", {.most_in_a_write = 1000}},
                    Device{"tiny_writes_all_inline", {.most_inline = 512, .most_in_a_write = 500}}),
    [](const auto& device) { return std::string(device.param.name); });

// Each message alone, then all of them under way at once.
TEST_P(VerbsMessages, EverySizeArrivesWhicheverEndIsRegistered) {
  ends_.join();
  std::uint64_t base = 0, received = 0;
  const auto run = [&](const std::vector<std::size_t>& bytes, bool out_registered, bool in_registered, bool by_view,
                       bool receive_first) {
    std::vector<Bytes> out, in;
    std::vector<std::shared_ptr<void>> tokens;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      out.push_back(pattern(base + i, bytes[i]));
      in.emplace_back(bytes[i]);
      if (out_registered) tokens.push_back(ends_.add(0, out[i]));
      if (in_registered) tokens.push_back(ends_.add(1, in[i]));
    }
    const auto receive = [&] {
      for (std::size_t i = 0; i < in.size() && !by_view; ++i) ends_.receive(1, base + i, in[i]);
    };
    if (receive_first) {
      receive();
      for (int turn = 0; turn < 3; ++turn) ends_[0].progress(), ends_[1].progress();
    }
    for (std::size_t i = 0; i < out.size(); ++i) ends_.send(0, base + i, out[i]);
    if (!receive_first) {
      for (int turn = 0; turn < 3; ++turn) ends_[0].progress(), ends_[1].progress();
      receive();
    }
    if (by_view) {
      for (std::size_t i = 0; i < in.size(); ++i) in[i] = ends_.look(1, base + i, bytes[i]);
    } else {
      received += in.size();
    }
    base += bytes.size();
    ends_.wait([&] { return ends_[0].sent() == base && ends_[1].received() == received; });
    for (std::size_t i = 0; i < out.size(); ++i)
      EXPECT_TRUE(same(in[i], out[i])) << bytes[i] << out_registered << in_registered << by_view << receive_first;
  };
  for (const bool out_registered : {false, true}) {
    for (const bool in_registered : {false, true}) {
      for (const bool by_view : {false, true}) {
        for (const bool receive_first : {false, true}) {
          if (!kBrief)
            for (const std::size_t bytes : sizes()) run({bytes}, out_registered, in_registered, by_view, receive_first);
          run(sizes(), out_registered, in_registered, by_view, receive_first);
        }
      }
    }
  }
}

// More than may be offered, both ways at once; every third is looked at, every other end is registered.
TEST_P(VerbsMessages, HundredsOfLargeOnesMayBePostedAheadBothWays) {
  constexpr std::uint64_t kCount = 300;
  static_assert(kCount > 10 * kMaxOffered);
  ends_.join();
  struct Side {
    std::vector<Bytes> out, in;
    std::vector<std::shared_ptr<void>> tokens;
  } sides[2];
  const auto bytes_of = [](int from, std::uint64_t message) {
    return kLargeBytes - 100 + (message * 7919 + static_cast<std::uint64_t>(from) * 104729) % kRingBytes / 4;
  };
  for (const int side : {0, 1}) {
    for (std::uint64_t i = 0; i < kCount; ++i) {
      sides[side].out.push_back(pattern(i + 1000 * side, bytes_of(side, i)));
      sides[side].in.emplace_back(bytes_of(1 - side, i));
      if (i % 5 != 0) sides[side].tokens.push_back(ends_.add(side, sides[side].out[i]));
      if (i % 7 != 0) sides[side].tokens.push_back(ends_.add(side, sides[side].in[i]));
    }
  }
  const auto play = [&](int side) {
    Channel& channel = ends_[side];
    auto& [out, in, tokens] = sides[side];
    for (std::uint64_t i = 0; i < kCount; ++i)
      if (i % 3 != 0) ends_.receive(side, i, in[i]);
    for (std::uint64_t i = 0; i < kCount; ++i) ends_.send(side, i, out[i]);
    for (std::uint64_t i = 0; i < kCount; i += 3) {
      Bytes seen;
      while (seen.size() < in[i].size()) {
        std::span<const std::byte> here;
        wait_until({&channel}, [&, bytes = in[i].size()] { return channel.view(tag_of(i), bytes, here); });
        seen.insert(seen.end(), here.begin(), here.end());
        channel.release(here.size());
      }
      in[i] = std::move(seen);
    }
    wait_until({&channel}, [&] { return channel.sent() == kCount && channel.received() == kCount - kCount / 3; });
  };
  std::thread other([&] { EXPECT_NO_THROW(play(1)); });
  EXPECT_NO_THROW(play(0));
  other.join();
  for (const int side : {0, 1})
    for (std::uint64_t i = 0; i < kCount; ++i)
      EXPECT_TRUE(same(sides[side].in[i], sides[1 - side].out[i])) << side << " " << i;
}

// --- calls that differ -----------------------------------------------------------------------------------------------

class VerbsMismatch : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(ReceiveFirst, VerbsMismatch, testing::Bool());

TEST_P(VerbsMismatch, OfTagsIsThrownAtTheReceiverBeforeMemoryIsTouched) {
  for (const std::size_t bytes : {std::size_t{100}, kLargeBytes, std::size_t{1} << 20}) {
    VerbsEnds ends;
    ends.join();
    Bytes out = pattern(0, bytes), in(bytes, std::byte{0x5a});
    const auto out_token = ends.add(0, out), in_token = ends.add(1, in);
    const auto receive = [&] { ends[1].receive(0, tag_of(7), in.data(), bytes); };
    if (GetParam()) {
      receive();
      for (int turn = 0; turn < 5; ++turn) ends[1].progress(), ends[0].progress();
    }
    ends.send(0, tag_of(3), out);
    for (int turn = 0; turn < 5; ++turn) ends[0].progress();
    if (!GetParam()) receive();
    try {
      ends.wait([&] { return ends[1].received() > 0; });
      ADD_FAILURE() << "not noticed";
    } catch (const TagMismatch& mismatch) {
      EXPECT_EQ(mismatch.peer, 0);
      EXPECT_EQ(mismatch.mine, tag_of(7));
      EXPECT_EQ(mismatch.theirs, tag_of(3));
    }
    EXPECT_EQ(in, Bytes(bytes, std::byte{0x5a}));
  }
}

TEST_P(VerbsMismatch, OfLengthsIsThrownAtTheReceiverBeforeMemoryIsTouched) {
  const std::pair<std::size_t, std::size_t> kPairs[] = {// what is sent, what is wanted
                                                        {kLargeBytes, kLargeBytes + 1},
                                                        {kLargeBytes - 1, kLargeBytes},
                                                        {kLargeBytes, kLargeBytes - 1},
                                                        {2 * kRingBytes, kLargeBytes},
                                                        {kLargeBytes, 2 * kRingBytes},
                                                        {100, kRingBytes},
                                                        {kRingBytes, 100}};
  for (const auto& [sent, wanted] : kPairs) {
    VerbsEnds ends;
    ends.join();
    Bytes out = pattern(0, sent), in(wanted, std::byte{0x5a});
    const auto out_token = ends.add(0, out), in_token = ends.add(1, in);
    if (GetParam()) {
      ends.receive(1, 0, in);
      for (int turn = 0; turn < 5; ++turn) ends[1].progress(), ends[0].progress();
    }
    ends.send(0, 0, out);
    for (int turn = 0; turn < 5; ++turn) ends[0].progress();
    if (!GetParam()) ends.receive(1, 0, in);
    try {
      ends.wait([&] { return ends[1].received() > 0; });
      ADD_FAILURE() << "not noticed";
    } catch (const LengthMismatch& mismatch) {
      EXPECT_EQ(mismatch.peer, 0);
      EXPECT_EQ(mismatch.mine_bytes, wanted);
      EXPECT_EQ(mismatch.theirs_bytes, sent);
    }
    EXPECT_EQ(in, Bytes(wanted, std::byte{0x5a}));
  }
}

}  // namespace
}  // namespace tutti::internal
