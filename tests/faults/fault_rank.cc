// A rank of the random faults: makes random collectives, and checks every result, until one throws. Then it prints what
// it has heard, and stays, leaves, exits or shrinks, as
// it is told. What it prints, a line each:
//
//     ready                          it has joined, and made its first calls
//     heard NS                       failure() tells of an error; NS: of the steady clock, in nanoseconds
//     error NS CODE PEER TEXT        a call has thrown; TEXT without who says it, and without the call
//     wrong WHAT                     a wrong result
//     calls N                        so many have been made; every tenth of a second
//     went_on RANKS                  those of the smaller communicator, by their numbers in the job; it has worked
//     again TEXT                     that has failed too
//     refused CODE TEXT              why there is none
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tutti/communicator.h"

namespace {

using namespace std::chrono_literals;

// One write, so that lines of two threads do not mix.
void print(const std::string& line) {
  const std::string whole = line + "\n";
  if (::write(STDOUT_FILENO, whole.data(), whole.size()) < 0) ::_exit(1);
}

std::string now() { return std::to_string(std::chrono::steady_clock::now().time_since_epoch().count()); }

// The test that has started this rank closes its input at the end.
void wait_for_the_end() {
  for (char any; ::read(STDIN_FILENO, &any, 1) > 0;) {
  }
}

// "rank 1 (of the job: 2): TEXT, during all_reduce #2 (float32 x 1024, sum)"
std::string reason_of(const tutti::Error& error) {
  std::string text = error.what();
  auto behind_name = text.find(": ");
  if (text.substr(0, behind_name).ends_with("(of the job")) behind_name = text.find("): ") + 1;
  text.erase(0, behind_name + 2);
  return text.substr(0, text.rfind(", during "));
}

std::int32_t input_of(int rank, int call, std::size_t i) {
  return static_cast<std::int32_t>(1000 * rank + 7 * call + i % 13);
}

void expect(bool is_right, const std::string& what, int call) {
  if (!is_right) print("wrong " + what + " in call " + std::to_string(call));
}

// All ranks draw the same calls.
class Caller {
 public:
  Caller(tutti::Communicator& group, unsigned seed) : group_(group), random_(seed) {}

  int calls() const { return calls_; }
  void call() {
    ++calls_;
    const auto kind = random_() % 4;
    const double exponent = 5.0 * static_cast<double>(random_()) / static_cast<double>(std::mt19937::max());
    const auto count = static_cast<std::size_t>(std::pow(10.0, exponent));
    const int root = static_cast<int>(random_() % static_cast<unsigned>(group_.size()));
    if (kind == 0) all_reduce(count);
    if (kind == 1) broadcast(count, root);
    if (kind == 2) all_gather(count / static_cast<std::size_t>(group_.size()) + 1);
    if (kind == 3) group_.barrier();
  }

 private:
  std::vector<std::int32_t> inputs(int rank, std::size_t count) const {
    std::vector<std::int32_t> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = input_of(rank, calls_, i);
    return values;
  }

  void all_reduce(std::size_t count) {
    auto values = inputs(group_.rank(), count);
    group_.all_reduce(std::span(values), tutti::Op::sum);
    const std::int32_t ranks = group_.size();
    bool is_right = true;
    for (std::size_t i = 0; i < count; ++i)
      is_right = is_right && values[i] == ranks * input_of(0, calls_, i) + 1000 * ranks * (ranks - 1) / 2;
    expect(is_right, "all_reduce", calls_);
  }

  void broadcast(std::size_t count, int root) {
    auto values = inputs(group_.rank(), count);
    group_.broadcast(std::span(values), root);
    expect(values == inputs(root, count), "broadcast", calls_);
  }

  void all_gather(std::size_t count) {
    const auto own = inputs(group_.rank(), count);
    std::vector<std::int32_t> all(count * static_cast<std::size_t>(group_.size()));
    group_.all_gather(own.data(), all.data(), count, tutti::DType::int32);
    bool is_right = true;
    for (std::size_t i = 0; i < all.size(); ++i)
      is_right = is_right && all[i] == input_of(static_cast<int>(i / count), calls_, i % count);
    expect(is_right, "all_gather", calls_);
  }

  tutti::Communicator& group_;
  std::mt19937 random_;
  std::atomic<int> calls_{0};
};

// Keeps copies of this process's descriptors when it is killed.
void fork_a_child() {
  if (::fork() != 0) return;
  wait_for_the_end();
  ::_exit(0);
}

void make_calls(tutti::Communicator& group, unsigned seed, bool forks) {
  std::atomic<bool> is_over{false};
  std::optional<std::thread> listener;
  Caller caller(group, seed);
  try {
    for (int i = 0; i < 4; ++i) caller.call();
    group.barrier();
    if (forks) fork_a_child();
    listener.emplace([&] {
      for (int rounds = 1; !is_over && !group.failure(); ++rounds) {
        std::this_thread::sleep_for(2ms);
        if (rounds % 50 == 0) print("calls " + std::to_string(caller.calls()));
      }
      if (group.failure()) print("heard " + now());
    });
    print("ready");
    while (true) caller.call();
  } catch (const tutti::Error& error) {
    print("error " + now() + " " + tutti::to_string(error.code) + " " + std::to_string(error.peer) + " " +
          reason_of(error));
  }
  is_over = true;
  if (listener) listener->join();
}

// A rank that is lost later fails the smaller communicator, which is shrunk in turn.
void go_on(tutti::Communicator& group, unsigned seed) {
  std::optional<tutti::Communicator> smaller;
  try {
    smaller.emplace(group.shrink());
  } catch (const tutti::Error& error) {
    print(std::string("refused ") + tutti::to_string(error.code) + " " + error.what());
    return wait_for_the_end();
  }
  try {
    Caller caller(*smaller, seed);
    for (int i = 0; i < 8; ++i) caller.call();
    std::string ranks;
    for (const int rank : smaller->job_ranks()) ranks.append(" ").append(std::to_string(rank));
    print("went_on" + ranks);
    wait_for_the_end();
  } catch (const tutti::Error& error) {
    print(std::string("again ") + error.what());
    go_on(*smaller, seed + 1);
  }
}

}  // namespace

int main(int count, char** words) try {
  if (count != 11) return 2;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  tutti::Settings settings;
  settings.rank = std::atoi(words[1]);
  settings.size = std::atoi(words[2]);
  settings.master_address = words[3];
  settings.master_port = static_cast<std::uint16_t>(std::atoi(words[4]));
  settings.transport = words[5];
  const auto seed = static_cast<unsigned>(std::strtoul(words[6], nullptr, 10));
  const std::string shape = words[7], child = words[8], then = words[9];
  settings.secret = "a secret of this test";
  settings.heartbeat_timeout = std::chrono::milliseconds(std::atoi(words[10]));
  settings.timeout = 60s;
  std::optional<tutti::Communicator> group(tutti::Communicator::join(settings));
  if (shape == "without_zero") {
    tutti::Communicator part = group->split(settings.rank > 0 ? 1 : 0);
    group.emplace(std::move(part));
  }
  if (shape == "without_zero" && settings.rank == 0) {
    print("ready");
    group.reset();
    return 0;
  }
  make_calls(*group, seed, child == "fork");
  if (then == "exit") ::_exit(0);
  if (then == "stay") wait_for_the_end();
  if (then == "shrink") go_on(*group, seed + 1);
  group.reset();
  return 0;
} catch (const tutti::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
