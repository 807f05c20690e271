// A channel on which nothing happens: what a test needs of one, it overrides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "transport/transport.h"

namespace tutti::internal {

struct IdleChannel : Channel {
  void send(const Tag&, const std::byte*, std::size_t, Copier) override {}
  std::uint64_t sent() override { return 0; }
  std::byte* reserve(const Tag&, std::size_t, const std::byte*, Copier, bool) override { return nullptr; }
  void commit(const Tag&) override {}
  void check_reserved() override {}
  void receive(std::uint64_t, const Tag&, std::byte*, std::size_t, const ReceiveHints&) override {}
  std::uint64_t received() override { return 0; }
  bool view(const Tag&, std::size_t, std::span<const std::byte>&) override { return false; }
  void release(std::size_t) override {}
  bool progress() override { return false; }
  void flush() override {}
  bool unclaimed(Tag&) override { return false; }
  bool withdraw() override { return true; }
};

}  // namespace tutti::internal
