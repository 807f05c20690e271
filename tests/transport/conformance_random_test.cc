// Random mixtures of every way to send and to receive, both ways at once, against a plan that both sides know.
#include <deque>
#include <random>

#include "copiers.h"
#include "transport/conformance.h"

namespace tutti::internal {
namespace {

Copier copier_of(std::uint64_t number) {
  constexpr Copier kAll[] = {kEach, kPeer, kSender, kBothCopy, {.shared = SharedCopier::split}};
  return kAll[number % std::size(kAll)];
}

struct Planned {
  std::uint64_t number;  // names tag and contents
  std::size_t bytes;
  bool viewed;  // else its receive is posted, perhaps long before
};

std::vector<Planned> plan(std::uint64_t seed, int sender, int count) {
  std::mt19937_64 random(seed * 2 + static_cast<std::uint64_t>(sender));
  std::vector<Planned> messages;
  for (int i = 0; i < count; ++i) {
    const std::size_t limits[] = {1, 10, 100, 5'000, 40'000, 200'000};
    messages.push_back({random(), random() % limits[random() % std::size(limits)], random() % 2 == 0});
  }
  return messages;
}

// One rank: at every step does something random that it may do, and checks all that comes back.
class Player {
 public:
  Player(Channel& channel, std::vector<Planned> out, std::vector<Planned> in, std::uint64_t seed)
      : channel_(channel), out_(std::move(out)), in_(std::move(in)), random_(seed) {}

  void play() {
    wait_until({&channel_}, [&] {
      switch (random_() % 3) {
        case 0: send_next(); break;
        case 1: post_next(); break;
        default: collect(); break;
      }
      look();
      return finished();
    });
  }

 private:
  bool finished() const {
    return next_out_ == out_.size() && lent_.empty() && next_post_ == in_.size() && next_view_ == in_.size() &&
           posted_.empty();
  }

  void send_next() {
    if (next_out_ == out_.size() || lent_.size() > random_() % 20) return;
    const Planned& message = out_[next_out_++];
    const Bytes data = pattern(message.number, message.bytes);
    if (std::byte* at = channel_.reserve(tag_of(message.number), message.bytes)) {
      if (message.bytes > 0) std::memcpy(at, data.data(), message.bytes);
      channel_.commit(tag_of(message.number));
      given_back(channel_.sent());
    } else {
      lent_.push_back(data);
      channel_.send(tag_of(message.number), lent_.back().data(), message.bytes, copier_of(message.number));
    }
  }

  void post_next() {
    while (next_post_ < in_.size() && in_[next_post_].viewed) ++next_post_;
    if (next_post_ == in_.size() || posted_.size() > random_() % 10) return;
    const Planned& message = in_[next_post_];
    posted_.push_back({message, Bytes(message.bytes)});
    std::byte* data = posted_.back().data.data();
    channel_.receive(next_post_, tag_of(message.number), data, message.bytes,
                     {.fetches_to_write = message.number % 2 == 0, .may_split = message.number / 2 % 2 == 0});
    ++next_post_;
  }

  void look() {
    while (next_view_ < in_.size() && !in_[next_view_].viewed) ++next_view_;
    if (next_view_ > next_post_ || next_view_ == in_.size()) return;
    const Planned& message = in_[next_view_];
    std::span<const std::byte> here;
    if (!channel_.view(tag_of(message.number), message.bytes, here)) return;
    const std::size_t taken = here.size() < 2 || random_() % 2 == 0 ? here.size() : random_() % here.size();
    seen_.insert(seen_.end(), here.begin(), here.begin() + static_cast<std::ptrdiff_t>(taken));
    channel_.release(taken);
    if (seen_.size() < message.bytes) return;
    EXPECT_TRUE(same(seen_, pattern(message.number, message.bytes)));
    seen_.clear();
    ++next_view_;
  }

  void collect() {
    given_back(channel_.sent());
    for (const std::uint64_t count = channel_.received(); received_ < count; ++received_) {
      ASSERT_FALSE(posted_.empty());
      const Posted& first = posted_.front();
      EXPECT_TRUE(same(first.data, pattern(first.message.number, first.message.bytes)));
      posted_.pop_front();
    }
  }

  // The first messages lent are the first given back; overwriting them shows whoever still reads.
  void given_back(std::uint64_t sent) {
    ASSERT_LE(sent, next_out_);
    while (lent_.size() > next_out_ - sent) {
      std::fill(lent_.front().begin(), lent_.front().end(), std::byte{0xbb});
      lent_.pop_front();
    }
  }

  struct Posted {
    Planned message;
    Bytes data;
  };
  Channel& channel_;
  const std::vector<Planned> out_, in_;
  std::mt19937_64 random_;
  std::size_t next_out_ = 0, next_post_ = 0, next_view_ = 0;
  std::deque<Bytes> lent_;
  std::deque<Posted> posted_;
  std::uint64_t received_ = 0;
  Bytes seen_;  // of the message that is viewed
};

TEST_P(Conformance, RandomMixturesDeliverWhatWasPlanned) {
  const int seeds = GetParam().quick ? 12 : 4;
  for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(seeds); ++seed) {
    SCOPED_TRACE(seed);
    Ends ends = open(seed);
    Player first(*ends.first, plan(seed, 0, 120), plan(seed, 1, 120), seed);
    Player second(*ends.second, plan(seed, 1, 120), plan(seed, 0, 120), seed + 1000);
    on_two_threads([&] { first.play(); }, [&] { second.play(); });
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace tutti::internal
