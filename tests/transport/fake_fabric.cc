#include "transport/fake_fabric.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <vector>

#include "tutti/error.h"

namespace tutti::internal {

using verbs::Event;

class FakeQueuePair;

// Everything in here is guarded by the mutex.
class FakeNetwork {
 public:
  struct Region {
    std::uintptr_t start;
    std::size_t bytes;
  };
  bool covers(std::uint32_t key, std::uintptr_t at, std::size_t bytes) const {
    const auto region = regions.find(key);
    return region != regions.end() && at >= region->second.start &&
           at + bytes <= region->second.start + region->second.bytes;
  }

  std::mutex mutex;
  std::map<std::uint32_t, Region> regions;
  std::map<std::uint64_t, FakeQueuePair*> pairs;
  std::uint64_t next = 1;
  bool is_cut = false;
  std::string error_text;
  std::mt19937_64 random{7};
};

namespace {

class FakeRegistration final : public verbs::Registration {
 public:
  FakeRegistration(std::shared_ptr<FakeNetwork> network, std::size_t& registered, const std::byte* data,
                   std::size_t bytes)
      : network_(std::move(network)), registered_(registered), bytes_(bytes) {
    const std::lock_guard lock(network_->mutex);
    key_ = static_cast<std::uint32_t>(network_->next++);
    network_->regions[key_] = {reinterpret_cast<std::uintptr_t>(data), bytes};
    registered_ += bytes_;
  }
  ~FakeRegistration() override {
    const std::lock_guard lock(network_->mutex);
    network_->regions.erase(key_);
    registered_ -= bytes_;
  }
  std::uint32_t local_key() const override { return key_; }
  std::uint32_t remote_key() const override { return key_ | kRemote; }
  static constexpr std::uint32_t kRemote = 1u << 31;

 private:
  const std::shared_ptr<FakeNetwork> network_;
  std::size_t& registered_;
  const std::size_t bytes_;
  std::uint32_t key_;
};

}  // namespace

class FakeQueuePair final : public verbs::QueuePair {
 public:
  FakeQueuePair(std::shared_ptr<FakeNetwork> network, int bell, const FakeLimits& limits,
                const verbs::Fabric::Sizes& sizes)
      : network_(std::move(network)), bell_(bell), limits_(limits), sizes_(sizes) {
    const std::lock_guard lock(network_->mutex);
    number_ = network_->next++;
    network_->pairs[number_] = this;
  }
  ~FakeQueuePair() override { close(); }

  Address address() const override {
    Address address{};
    std::memcpy(address.data(), &number_, sizeof number_);
    return address;
  }
  void connect(const Address& peer) override { std::memcpy(&peer_, peer.data(), sizeof peer_); }

  bool write(const Write& write) override {
    const std::lock_guard lock(network_->mutex);
    if (under_way_.size() == sizes_.writes) return false;
    Job job{++written_, write.to, write.tells, write.word, write.awaited || written_ % 16 == 0, {}, {}};
    std::size_t bytes = 0;
    for (const verbs::Piece& piece : write.pieces) bytes += piece.bytes;
    for (const verbs::Piece& piece : write.pieces) {
      if (bytes <= limits_.most_inline) {
        job.taken.insert(job.taken.end(), piece.data, piece.data + piece.bytes);
      } else {
        job.pieces.push_back(piece);
      }
    }
    under_way_.push_back(std::move(job));
    // Who sleeps carries nothing out.
    if (armed_) ring();
    if (FakeQueuePair* peer = find(peer_); peer != nullptr && peer->armed_) peer->ring();
    return true;
  }
  std::uint64_t written() const override { return written_; }
  std::size_t most_inline() const override { return limits_.most_inline; }

  std::size_t poll(std::span<Event> events) override {
    const std::lock_guard lock(network_->mutex);
    if (FakeQueuePair* peer = find(peer_)) peer->carry_out(1);
    carry_out(network_->random() % 4);
    std::size_t count = 0;
    for (; count < events.size() && !events_.empty(); ++count) {
      events[count] = events_.front();
      events_.pop_front();
      if (events[count].kind == Event::Kind::arrived) --unpolled_;
    }
    return count;
  }
  const std::string& why() const override { return why_; }

  // What is still to be carried out will be when somebody polls.
  void arm() override {
    const std::lock_guard lock(network_->mutex);
    FakeQueuePair* peer = find(peer_);
    if (!under_way_.empty() || (peer != nullptr && !peer->under_way_.empty())) ring();
    armed_ = true;
  }
  void close() override {
    const std::lock_guard lock(network_->mutex);
    network_->pairs.erase(number_);
    under_way_.clear();
  }

 private:
  struct Job {
    std::uint64_t number;
    verbs::Place to;
    bool tells;
    std::uint32_t word;
    bool reported;
    std::vector<std::byte> taken;
    std::vector<verbs::Piece> pieces;
  };
  FakeQueuePair* find(std::uint64_t number) const {
    const auto found = network_->pairs.find(number);
    return found == network_->pairs.end() ? nullptr : found->second;
  }
  void ring() const {
    const std::uint64_t one = 1;
    EXPECT_EQ(::write(bell_, &one, sizeof one), static_cast<ssize_t>(sizeof one));
  }
  void tell(const Event& event) {
    events_.push_back(event);
    if (std::exchange(armed_, false)) ring();
  }
  void carry_out(std::size_t most) {
    for (; most > 0 && !under_way_.empty() && why_.empty(); --most) {
      Job& job = under_way_.front();
      FakeQueuePair* peer = find(peer_);
      if (network_->is_cut || peer == nullptr) {
        why_ = "the peer does not answer";
        tell({.kind = Event::Kind::failed});
        return;
      }
      std::uintptr_t at = job.to.address;
      const std::uint32_t key = job.to.remote_key & ~FakeRegistration::kRemote;
      const auto put = [&](const std::byte* data, std::size_t bytes) {
        EXPECT_TRUE(network_->covers(key, at, bytes)) << "written where nothing is registered";
        if (bytes > 0 && network_->covers(key, at, bytes)) std::memcpy(reinterpret_cast<std::byte*>(at), data, bytes);
        at += bytes;
      };
      put(job.taken.data(), job.taken.size());
      for (const verbs::Piece& piece : job.pieces) {
        EXPECT_TRUE(network_->covers(piece.local_key, reinterpret_cast<std::uintptr_t>(piece.data), piece.bytes))
            << "sent from memory that is not registered";
        put(piece.data, piece.bytes);
      }
      if (job.tells) {
        EXPECT_LT(peer->unpolled_, peer->sizes_.arrivals) << "the receiver is not ready";
        ++peer->unpolled_;
        peer->tell({.kind = Event::Kind::arrived, .word = job.word, .bytes = at - job.to.address});
      }
      if (job.reported) tell({.kind = Event::Kind::done, .count = job.number});
      under_way_.pop_front();
    }
  }

  const std::shared_ptr<FakeNetwork> network_;
  const int bell_;
  const FakeLimits limits_;
  const verbs::Fabric::Sizes sizes_;
  std::uint64_t number_ = 0, peer_ = 0, written_ = 0;
  std::deque<Job> under_way_;
  std::deque<Event> events_;
  std::uint32_t unpolled_ = 0;
  bool armed_ = false;
  std::string why_;
};

namespace {

class FakeFabric final : public verbs::Fabric {
 public:
  FakeFabric(std::shared_ptr<FakeNetwork> network, const FakeLimits& limits)
      : network_(std::move(network)), limits_(limits), bell_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  ~FakeFabric() override {
    ::close(bell_);
    EXPECT_EQ(registered_, 0u) << "registered memory is left";
  }

  std::unique_ptr<verbs::QueuePair> queue_pair(const Sizes& sizes) override {
    return std::make_unique<FakeQueuePair>(network_, bell_, limits_, sizes);
  }
  std::unique_ptr<verbs::Registration> register_memory(std::byte* data, std::size_t bytes) override {
    if (registered_ + bytes > limits_.most_registered)
      throw Error(ErrorCode::system, "no more memory may be registered here");
    return std::make_unique<FakeRegistration>(network_, registered_, data, bytes);
  }
  std::size_t most_in_a_write() const override { return limits_.most_in_a_write; }
  int bell() const override { return bell_; }
  void hush() override {}
  std::string error_text() override {
    const std::lock_guard lock(network_->mutex);
    return network_->error_text;
  }

 private:
  const std::shared_ptr<FakeNetwork> network_;
  const FakeLimits limits_;
  const int bell_;
  std::size_t registered_ = 0;
};

}  // namespace

std::shared_ptr<FakeNetwork> make_fake_network() { return std::make_shared<FakeNetwork>(); }

std::shared_ptr<verbs::Fabric> make_fake_fabric(std::shared_ptr<FakeNetwork> network, const FakeLimits& limits) {
  return std::make_shared<FakeFabric>(std::move(network), limits);
}

void cut(FakeNetwork& network) {
  const std::lock_guard lock(network.mutex);
  network.is_cut = true;
}

void set_error_text(FakeNetwork& network, const std::string& error_text) {
  const std::lock_guard lock(network.mutex);
  network.error_text = error_text;
}

}  // namespace tutti::internal
