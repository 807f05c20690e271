// Send and receive between pairs of ranks (0 and 1, 2 and 3, ...), beside the limit of the same run.
//
//   tutti run -n 2 message_benchmark ping_pong|one_way [SIZE,SIZE,...] [ROUNDS] [symmetric]
//
// ping_pong: the even rank sends and then receives, the odd one receives and then sends; a figure is the whole round
// trip. one_way: the even rank sends and the odd one receives, back to back; a figure is one message.
//
// The limit is plain loops of the same two processes. Over shared memory: a flag of one cache line each way, and for a
// message that no line holds a memcpy out of the other's memory (one_way: nothing but that memcpy). Over TCP: send()
// and recv() of one connection on the loopback, polling.
//
// Each round times the limit and then the library. Rank 0 prints, a line a size: bytes, microseconds, the limit's, and
// how many times the limit that is; medians over the rounds, of the slowest pair.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tutti/communicator.h"

namespace {

using tutti::Communicator;
using tutti::DType;

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// The loops of one pair. `first`: this is the even rank.
class Limit {
 public:
  virtual ~Limit() = default;
  virtual void ping_pong(std::size_t bytes) = 0;
  virtual void one_way(std::size_t bytes, std::size_t messages) = 0;
};

constexpr std::size_t kInLine = 48;  // a message that travels with its flag

class SharedMemory final : public Limit {
 public:
  // The odd rank opens the even one's memory by way of /proc, so that it has no name that could be left behind.
  SharedMemory(Communicator& world, std::size_t bytes)
      : first_(world.rank() % 2 == 0), span_(4096 + (bytes + 4095) / 4096 * 4096), own_(span_) {
    const int peer = world.rank() ^ 1;
    std::int64_t place[2] = {::getpid(), -1};
    int fd = -1;
    if (first_) {
      fd = ::memfd_create("message_benchmark", MFD_CLOEXEC);
      if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(2 * span_)) != 0) throw std::runtime_error("no memory to share");
      place[1] = fd;
      world.send(place, 2, DType::int64, peer);
    } else {
      world.receive(place, 2, DType::int64, peer);
      fd =
          ::open(("/proc/" + std::to_string(place[0]) + "/fd/" + std::to_string(place[1])).c_str(), O_RDWR | O_CLOEXEC);
    }
    void* const at = fd < 0 ? MAP_FAILED : ::mmap(nullptr, 2 * span_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    world.barrier();
    if (fd >= 0) ::close(fd);
    if (at == MAP_FAILED) throw std::runtime_error("the memory of rank " + std::to_string(peer) + " cannot be mapped");
    base_ = static_cast<std::byte*>(at);
    std::memset(mine(), 1, span_ - 4096);
    std::memset(own_.data(), 1, own_.size());
  }
  ~SharedMemory() override { ::munmap(base_, 2 * span_); }

  void ping_pong(std::size_t bytes) override {
    ++number_;
    if (first_) {
      say();
      hear(bytes);
    } else {
      hear(bytes);
      say();
    }
  }
  void one_way(std::size_t bytes, std::size_t messages) override {
    for (std::size_t i = 0; i < messages && !first_; ++i) std::memcpy(own_.data(), theirs(), bytes);
  }

 private:
  std::byte* half(bool of_first) const { return base_ + (of_first ? 0 : span_); }
  std::byte* mine() const { return half(first_) + 4096; }
  std::byte* theirs() const { return half(!first_) + 4096; }
  std::atomic<std::uint64_t>& flag(bool of_first) const {
    return *reinterpret_cast<std::atomic<std::uint64_t>*>(half(of_first));
  }
  void say() { flag(first_).store(number_, std::memory_order_release); }
  void hear(std::size_t bytes) {
    while (flag(!first_).load(std::memory_order_acquire) != number_) {
    }
    if (bytes > kInLine) std::memcpy(own_.data(), theirs(), bytes);
  }

  const bool first_;
  const std::size_t span_;
  std::vector<std::byte> own_;
  std::byte* base_ = nullptr;
  std::uint64_t number_ = 0;
};

class Tcp final : public Limit {
 public:
  Tcp(Communicator& world, std::size_t bytes) : first_(world.rank() % 2 == 0), own_(bytes + 1) {
    const int peer = world.rank() ^ 1;
    sockaddr_in place{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
    socklen_t length = sizeof place;
    auto* const address = reinterpret_cast<sockaddr*>(&place);
    int port = 0;
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (first_) {
      const int listens = fd_;
      if (::bind(listens, address, length) != 0 || ::listen(listens, 1) != 0 ||
          ::getsockname(listens, address, &length) != 0)
        throw std::runtime_error("no socket to listen on");
      port = place.sin_port;
      world.send(&port, 1, DType::int32, peer);
      fd_ = ::accept4(listens, nullptr, nullptr, SOCK_CLOEXEC);
      ::close(listens);
    } else {
      world.receive(&port, 1, DType::int32, peer);
      place.sin_port = static_cast<in_port_t>(port);
      if (::connect(fd_, address, length) != 0) throw std::runtime_error("no connection to the pair's other rank");
    }
    const int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  ~Tcp() override { ::close(fd_); }

  void ping_pong(std::size_t bytes) override {
    if (first_) {
      say(bytes);
      hear(bytes);
    } else {
      hear(bytes);
      say(bytes);
    }
  }
  void one_way(std::size_t bytes, std::size_t messages) override {
    for (std::size_t i = 0; i < messages; ++i) first_ ? say(bytes) : hear(bytes);
  }

 private:
  template <class Move>
  void move(std::size_t bytes, const Move& some) {
    for (std::size_t done = 0; done < bytes;)
      if (const ssize_t now = some(own_.data() + done, bytes - done); now > 0) {
        done += static_cast<std::size_t>(now);
      } else if (now == 0 || errno != EAGAIN) {
        throw std::runtime_error("the pair's other rank has closed its connection");
      }
  }
  void say(std::size_t bytes) {
    move(bytes,
         [this](const std::byte* at, std::size_t left) { return ::send(fd_, at, left, MSG_DONTWAIT | MSG_NOSIGNAL); });
  }
  void hear(std::size_t bytes) {
    move(bytes, [this](std::byte* at, std::size_t left) { return ::recv(fd_, at, left, MSG_DONTWAIT); });
  }

  const bool first_;
  std::vector<std::byte> own_;
  int fd_ = -1;
};

std::vector<std::size_t> sizes_of(const std::string& list) {
  std::vector<std::size_t> sizes;
  for (const char* at = list.c_str(); *at != '\0';) {
    char* end = nullptr;
    std::size_t size = std::strtoull(at, &end, 10);
    if (end == at) throw std::runtime_error("sizes are numbers of bytes, with K or M: 8,4K,1M");
    for (const auto& [unit, shift] : {std::pair('K', 10), std::pair('M', 20)})
      if (*end == unit) size <<= shift, ++end;
    sizes.push_back(size);
    at = *end == ',' ? end + 1 : end;
  }
  return sizes;
}

int measure(Communicator& world, bool goes_back, const std::vector<std::size_t>& sizes, std::size_t rounds,
            bool symmetric) {
  const bool first = world.rank() % 2 == 0;
  const int peer = world.rank() ^ 1;
  const std::size_t most = std::ranges::max(sizes);
  const std::string transport = tutti::Settings::from_env().transport;
  std::unique_ptr<Limit> limit;
  if (transport == "tcp") {
    limit = std::make_unique<Tcp>(world, most);
  } else {
    limit = std::make_unique<SharedMemory>(world, most);
  }
  const std::size_t span = (most + 4095) / 4096 * 4096 + 4096;
  std::optional<tutti::Memory> shared;
  std::unique_ptr<std::byte, void (*)(void*)> own(nullptr, std::free);
  if (symmetric) {
    shared = world.allocate(2 * span);
  } else {
    own.reset(static_cast<std::byte*>(std::aligned_alloc(4096, 2 * span)));
  }
  std::byte* const out = symmetric ? shared->as<std::byte>().data() : own.get();
  std::byte* const in = out + span;
  std::memset(out, 1 + world.rank() % 100, most);
  std::memset(in, 0, most);
  if (world.rank() == 0)
    std::printf("# %s, %d ranks, %s%s, medians of %zu rounds\n# bytes  us  limit, us  us/limit\n",
                goes_back ? "ping_pong: round trips" : "one_way: messages", world.size(), transport.c_str(),
                symmetric ? ", symmetric memory" : "", rounds);

  for (const std::size_t bytes : sizes) {
    const auto send = [&] { world.send(out, bytes, DType::uint8, peer); };
    const auto receive = [&] { world.receive(in, bytes, DType::uint8, peer); };
    const auto library = [&](std::size_t calls) {
      for (std::size_t i = 0; i < calls; ++i) {
        if (first) send();
        if (!first || goes_back) receive();
        if (!first && goes_back) send();
      }
    };
    const auto loops = [&](std::size_t calls) {
      if (!goes_back) return limit->one_way(bytes, calls);
      for (std::size_t i = 0; i < calls; ++i) limit->ping_pong(bytes);
    };
    const auto timed = [&](const auto& body, std::size_t calls) {
      world.barrier();
      const double begin = now_us();
      body(calls);
      double us = (now_us() - begin) / static_cast<double>(calls);
      world.all_reduce(std::span(&us, 1), tutti::Op::max);
      return us;
    };
    timed(library, 3);
    // About 10 ms; as many for all, as the slowest rank's time is everybody's.
    const auto calls = static_cast<std::size_t>(std::clamp(1e4 / timed(library, 10), 3.0, 20e3));
    timed(library, calls), timed(loops, calls);
    std::vector<double> ours, limits, ratios;
    for (std::size_t round = 0; round < rounds; ++round) {
      limits.push_back(timed(loops, calls));
      ours.push_back(timed(library, calls));
      ratios.push_back(ours.back() / limits.back());
    }
    if (!first || goes_back)
      if (std::any_of(in, in + bytes, [&](std::byte byte) { return byte != std::byte(1 + peer % 100); }))
        throw std::runtime_error("a message of " + std::to_string(bytes) + " bytes came out wrong");
    if (world.rank() == 0)
      std::printf("%8zu %10.4f %10.4f %6.2f\n", bytes, median(ours), median(limits), median(ratios)),
          std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string way = argc > 1 ? argv[1] : "";
  const std::size_t rounds = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 25;
  const std::string memory = argc > 4 ? argv[4] : "";
  if ((way != "ping_pong" && way != "one_way") || rounds == 0 || (!memory.empty() && memory != "symmetric")) {
    std::fprintf(stderr,
                 "usage: tutti run -n 2 message_benchmark ping_pong|one_way [SIZE,SIZE,...] [ROUNDS] [symmetric]\n");
    return 2;
  }
  const std::vector<std::size_t> sizes = sizes_of(argc > 2 ? argv[2] : "8,64,512,4K,32K,256K,2M,16M");
  auto world = Communicator::from_env();
  if (world.size() % 2 != 0) {
    if (world.rank() == 0) std::fprintf(stderr, "message_benchmark: %d ranks are no pairs\n", world.size());
    return 2;
  }
  return measure(world, way == "ping_pong", sizes, rounds, memory == "symmetric");
} catch (const std::exception& error) {
  std::fprintf(stderr, "message_benchmark: %s\n", error.what());
  return 1;
}
