#include "transport/faulty.h"

#include <random>
#include <utility>

namespace tutti::internal {
namespace {

class FaultyChannel final : public Channel {
 public:
  FaultyChannel(std::unique_ptr<Channel> inner, const Faults& faults, const bool& awake, std::uint64_t seed, int peer)
      : inner_(std::move(inner)), faults_(faults), awake_(awake), random_(seed), peer_(peer) {}

  void send(const Tag& tag, const std::byte* data, std::size_t bytes, Copier copier) override {
    if (messages_ == faults_.close_at) inner_.reset();
    open().send(tag_to_send(tag), data, bytes, copier);
    ++messages_;
  }
  std::uint64_t sent() override { return shown_later(sent_, open().sent()); }
  std::uint64_t published() override { return shown_later(published_, open().published()); }
  void keep(std::shared_ptr<void> memory) override {
    if (inner_)
      inner_->keep(std::move(memory));
    else
      static_cast<void>(new auto(std::move(memory)));  // the peer may read there for ever
  }

  std::byte* reserve(const Tag& tag, std::size_t bytes, const std::byte* source, Copier copier,
                     bool past_cache) override {
    const bool special = messages_ == faults_.close_at || messages_ == faults_.flip_tag_at;
    return special || chance(faults_.refuse_reserve_percent) ? nullptr
                                                             : open().reserve(tag, bytes, source, copier, past_cache);
  }
  bool reads_from_far(std::size_t bytes) override { return open().reads_from_far(bytes); }
  void commit(const Tag& tag) override {
    open().commit(tag);
    ++messages_;
    sent_ = {open().sent(), 0};  // a committed message counts at once
  }

  void check_reserved() override { open().check_reserved(); }

  void receive(std::uint64_t message, const Tag& tag, std::byte* data, std::size_t bytes,
               const ReceiveHints& hints) override {
    open().receive(message, tag, data, bytes, hints);
  }
  std::uint64_t received() override { return shown_later(received_, open().received()); }

  bool view(const Tag& tag, std::size_t bytes, std::span<const std::byte>& here) override {
    std::span<const std::byte> all;
    if (!open().view(tag, bytes, all)) return false;
    if (!view_left_) view_left_ = bytes;
    if (shown_later(viewed_, views_ + 1) == views_) return false;
    here = all.size() > 1 && chance(faults_.short_view_percent) ? all.first(1 + random_() % all.size()) : all;
    return true;
  }
  bool will_rewrite() const override { return inner_ && inner_->will_rewrite(); }  // const, so it opens nothing
  void release(std::size_t bytes) override {
    open().release(bytes);
    *view_left_ -= bytes;
    if (*view_left_ > 0) return;
    view_left_.reset();
    ++views_;
  }

  bool progress() override { return !chance(faults_.idle_progress_percent) && open().progress(); }
  void flush() override { open().flush(); }
  bool unclaimed(Tag& tag) override { return open().unclaimed(tag); }
  bool withdraw() override { return !inner_ || inner_->withdraw(); }

 private:
  struct Count {
    std::uint64_t shown = 0;
    unsigned calls_left = 0;  // until more is shown
  };

  Channel& open() {
    if (!inner_) throw ChannelClosed{peer_, "closed by fault injection"};
    return *inner_;
  }
  Tag tag_to_send(Tag tag) const {
    if (messages_ == faults_.flip_tag_at) tag.word[0] ^= 1;
    return tag;
  }
  bool chance(unsigned percent) { return awake_ && random_() % 100 < percent; }

  std::uint64_t shown_later(Count& count, std::uint64_t actual) {
    if (actual == count.shown) return actual;
    if (count.calls_left == 0) count.calls_left = 1 + random_() % (faults_.delay_calls + 1);
    if (--count.calls_left == 0 || !awake_) count = {actual, 0};
    return count.shown;
  }

  std::unique_ptr<Channel> inner_;
  const Faults& faults_;
  const bool& awake_;
  std::mt19937_64 random_;
  const int peer_;
  std::uint64_t messages_ = 0;            // sent through this end
  std::uint64_t views_ = 0;               // released in full
  std::optional<std::size_t> view_left_;  // bytes not yet released, while there is a view
  Count sent_, published_, received_, viewed_;
};

}  // namespace

std::unique_ptr<Channel> FaultyTransport::wrap(std::unique_ptr<Channel> inner, std::uint64_t communicator, int rank,
                                               int peer) const {
  std::seed_seq mix{faults_.seed, communicator, static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(peer)};
  std::uint32_t seed[1];
  mix.generate(seed, seed + 1);
  return std::make_unique<FaultyChannel>(std::move(inner), faults_, awake_, seed[0], peer);
}

void FaultyTransport::before_sleep() {
  awake_ = false;
  inner_.before_sleep();
}

void FaultyTransport::after_sleep() {
  awake_ = true;
  inner_.after_sleep();
}

}  // namespace tutti::internal
