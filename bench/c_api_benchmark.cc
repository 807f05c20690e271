// What the API for C costs over the one for C++: an all-reduce of 8 bytes.
//
//   tutti run -n 2 c_api_benchmark [ROUNDS]
//
// Each round makes 20,000 calls in both ways, by turns, on one communicator. Rank 0 prints medians over the rounds, of
// the slowest rank; the difference is the median of the rounds' differences.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

#include "c/handles.h"
#include "tutti/communicator.h"
#include "tutti/tutti.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kCalls = 20'000;

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t rounds = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 25;
  tutti_comm_t comm = nullptr;
  if (tutti_comm_init_env(&comm) != TUTTI_SUCCESS) {
    std::fprintf(stderr, "c_api_benchmark: %s\n", tutti_last_error(nullptr));
    return 1;
  }
  tutti::Communicator& world = comm->world;
  float in[2] = {1, 2}, out[2];
  bool well = true;
  const auto in_cpp = [&] { world.all_reduce(in, out, 2, tutti::DType::float32, tutti::Op::sum); };
  const auto in_c = [&] {
    well &= tutti_all_reduce(in, out, 2, TUTTI_FLOAT32, TUTTI_SUM, comm, nullptr) == TUTTI_SUCCESS;
  };
  const auto timed = [&](const auto& call) {
    world.barrier();
    const auto begin = Clock::now();
    for (int i = 0; i < kCalls; ++i) call();
    double ns = std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / kCalls;
    world.all_reduce(std::span(&ns, 1), tutti::Op::max);
    return ns;
  };
  std::vector<double> cpp, c, differences;
  for (std::size_t round = 0; round < rounds + 2; ++round) {
    const double a = timed(in_cpp), b = timed(in_c);
    if (round < 2) continue;  // warm-up
    cpp.push_back(a);
    c.push_back(b);
    differences.push_back(b - a);
  }
  if (world.rank() == 0)
    std::printf("all_reduce of 8 bytes, %d ranks, medians of %zu rounds, ns: C++ %.1f, C %.1f, difference %.1f%s\n",
                world.size(), rounds, median(cpp), median(c), median(differences), well ? "" : "; CALLS HAVE FAILED");
  return tutti_comm_destroy(comm) == TUTTI_SUCCESS && well ? 0 : 1;
}
