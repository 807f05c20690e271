// Two processes over the RDMA device of this host, as perftest's ib_write_lat and ib_write_bw measure it: half of a
// round trip, and bytes one way with several messages under way, between registered memory.
//   verbs_benchmark [BYTES...]   ->  bytes, us one way, MB/s (10^6)
#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "transport/verbs/device.h"
#include "transport/verbs/transport.h"
#include "tutti/error.h"

namespace {

constexpr int kRounds = 5;
constexpr std::uint64_t kUnderWay = 16;  // messages

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class Side {
 public:
  Side(int rank, int fd, std::size_t most)
      : memory_(2 * most * kUnderWay),
        transport_(sleeper_, tutti::internal::verbs::open_device({})),
        registered_(transport_.registry().add(memory_.data(), memory_.size())),
        channel_(transport_.channel(1, rank, 1 - rank)),
        most_(most) {
    transport_.attach(1, 1 - rank, fd);
  }

  void send(std::size_t bytes) { channel_->send({}, place(0, sent_++), bytes); }
  void receive(std::size_t bytes) { channel_->receive(received_, {}, place(1, received_), bytes), ++received_; }
  void wait() { wait_for(sent_, received_); }
  void wait_for(std::uint64_t sent, std::uint64_t received) {
    while (channel_->received() < received || channel_->sent() < sent) {
    }
  }
  std::uint64_t sent() const { return sent_; }
  std::uint64_t received() const { return received_; }

 private:
  std::byte* place(int half, std::uint64_t number) {
    return memory_.data() + (half * kUnderWay + number % kUnderWay) * most_;
  }
  std::vector<std::byte> memory_;
  tutti::internal::Sleeper sleeper_;
  tutti::internal::verbs::Transport transport_;
  const std::shared_ptr<void> registered_;
  const std::unique_ptr<tutti::internal::Channel> channel_;
  const std::size_t most_;
  std::uint64_t sent_ = 0, received_ = 0;
};

// Microseconds of half a round trip.
double latency(int rank, Side& side, std::size_t bytes, int trips) {
  const double start = now_us();
  for (int i = 0; i < trips; ++i) {
    side.receive(bytes);
    if (rank == 0) side.send(bytes);
    side.wait();
    if (rank == 1) side.send(bytes);
  }
  side.wait();
  return (now_us() - start) / trips / 2;
}

// Megabytes a second from rank 0 to rank 1, until the last has arrived.
double bandwidth(int rank, Side& side, std::size_t bytes, int messages) {
  const double start = now_us();
  const std::uint64_t before = rank == 0 ? side.sent() : side.received();
  for (int i = 0; i < messages; ++i) {
    const std::uint64_t over = before + static_cast<std::uint64_t>(i + 1) - std::min<std::uint64_t>(i + 1, kUnderWay);
    if (rank == 0) {
      side.wait_for(over, 0);
      side.send(bytes);
    } else {
      side.wait_for(0, over);
      side.receive(bytes);
    }
  }
  side.wait();
  if (rank == 0) side.receive(0);
  if (rank == 1) side.send(0);
  side.wait();
  return static_cast<double>(bytes) * messages / (now_us() - start);
}

double median(std::vector<double> of) {
  std::nth_element(of.begin(), of.begin() + of.size() / 2, of.end());
  return of[of.size() / 2];
}

void run(int rank, int fd, const std::vector<std::size_t>& sizes) {
  cpu_set_t cpu;
  CPU_ZERO(&cpu);
  CPU_SET(rank % sysconf(_SC_NPROCESSORS_ONLN), &cpu);
  sched_setaffinity(0, sizeof cpu, &cpu);
  Side side(rank, fd, *std::max_element(sizes.begin(), sizes.end()));
  if (rank == 0) std::printf("%12s %12s %12s\n", "bytes", "us", "MB/s");
  for (const std::size_t bytes : sizes) {
    std::vector<double> us, rate;
    for (int round = 0; round < kRounds; ++round) {
      us.push_back(latency(rank, side, bytes, bytes < 10'000 ? 200 : 10));
      rate.push_back(bandwidth(rank, side, bytes, bytes < 10'000 ? 500 : 100));
    }
    if (rank == 0) std::printf("%12zu %12.2f %12.1f\n", bytes, median(us), median(rate)), std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::size_t> sizes;
  for (int i = 1; i < argc; ++i) sizes.push_back(std::strtoull(argv[i], nullptr, 10));
  if (sizes.empty()) sizes = {8, 4096, 65536, 1 << 20};
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0) return std::perror("socketpair"), 1;
  const pid_t child = fork();
  const int rank = child == 0 ? 1 : 0;
  int status = 0;
  try {
    run(rank, ends[rank], sizes);
  } catch (const tutti::Error& error) {
    std::fprintf(stderr, "verbs_benchmark: %s\n", error.what());
    status = 1;
  } catch (const tutti::internal::ChannelClosed& closed) {
    std::fprintf(stderr, "verbs_benchmark: %s\n", closed.why.c_str());
    status = 1;
  }
  if (child == 0) _exit(status);
  int theirs = 0;
  waitpid(child, &theirs, 0);
  return status != 0 || theirs != 0 ? 1 : 0;
}
