// The fixture and the vocabulary of the conformance suite: what every transport must do, whatever it is.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <functional>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "copiers.h"
#include "transport/connection.h"

namespace tutti::internal {

inline constexpr std::size_t kSizes[] = {0,    1,    7,    8,    63,    64,    65,    1567,         1568,
                                         1569, 2047, 2048, 4095, 65535, 65536, 65537, (1 << 20) + 3};

using Bytes = std::vector<std::byte>;

// Bytes that tell one message from another and every position from the next. Made and compared by words: under a
// sanitizer a loop over bytes would be most of the suite's time.
inline Bytes pattern(std::uint64_t message, std::size_t bytes) {
  std::vector<std::uint64_t> words(bytes / sizeof(std::uint64_t) + 1);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = (message * 131 + i + 1) * 0x9e3779b97f4a7c15;
  Bytes data(bytes);
  if (bytes > 0) std::memcpy(data.data(), words.data(), bytes);
  return data;
}
inline bool same(const Bytes& a, const Bytes& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

inline Tag tag_of(std::uint64_t message) { return {{message + 1, ~message}}; }

// Waits as a rank does: everything under way on `channels` goes on moving. Throws rather than hang. Gives up the core
// only now and then: on a busy machine it may be long before it comes back.
inline void wait_until(std::initializer_list<Channel*> channels, const std::function<bool()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (std::uint64_t tries = 1; !done(); ++tries) {
    for (Channel* channel : channels) {
      channel->progress();
      channel->flush();
    }
    if (tries % 256 != 0) continue;
    if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error("nothing more happens");
    std::this_thread::yield();
  }
  for (Channel* channel : channels) channel->flush();
}

class Conformance : public testing::TestWithParam<ConnectionKind> {
 protected:
  std::unique_ptr<Connection> connection_ = GetParam().make();

  struct Ends {
    std::unique_ptr<Channel> first, second;
  };
  Ends open(std::uint64_t communicator = 1) {
    Ends ends;
    ends.first = connection_->open(0, communicator);
    ends.second = connection_->open(1, communicator);
    return ends;
  }

  // Runs both, each on a thread of its own; rethrows the first error.
  static void on_two_threads(const std::function<void()>& first, const std::function<void()>& second) {
    std::exception_ptr errors[2];
    const auto guarded = [](const std::function<void()>& body, std::exception_ptr& error) {
      try {
        body();
      } catch (...) {
        error = std::current_exception();
      }
    };
    std::thread other([&] { guarded(second, errors[1]); });
    guarded(first, errors[0]);
    other.join();
    for (const std::exception_ptr& error : errors) {
      if (error) std::rethrow_exception(error);
    }
  }

  static void send(Channel& channel, std::uint64_t message, const Bytes& data) {
    // The hint changes nothing but time.
    channel.send(tag_of(message), data.data(), data.size(), message % 2 == 0 ? kPeer : kEach);
  }
  static void receive(Channel& channel, std::uint64_t message, Bytes& data) {
    receive(channel, message, data, tag_of(message));
  }
  static void receive(Channel& channel, std::uint64_t message, Bytes& data, const Tag& tag) {
    channel.receive(message, tag, data.data(), data.size());
  }
  static void wait_for(Channel& channel, std::uint64_t sent, std::uint64_t received) {
    wait_until({&channel}, [&] { return channel.sent() >= sent && channel.received() >= received; });
  }
  static void wait_sent(Channel& channel, std::uint64_t count) { wait_for(channel, count, 0); }
  static void wait_received(Channel& channel, std::uint64_t count) { wait_for(channel, 0, count); }

  // All of the next message through views, released `piece` bytes at a time (0: all that is here).
  static Bytes look(Channel& channel, std::uint64_t message, std::size_t bytes, std::size_t piece = 0) {
    Bytes seen;
    do {
      std::span<const std::byte> here;
      wait_until({&channel}, [&] { return channel.view(tag_of(message), bytes, here); });
      const std::size_t taken = piece == 0 ? here.size() : std::min(piece, here.size());
      seen.insert(seen.end(), here.begin(), here.begin() + static_cast<std::ptrdiff_t>(taken));
      channel.release(taken);
    } while (seen.size() < bytes);
    channel.flush();
    return seen;
  }
};

}  // namespace tutti::internal
