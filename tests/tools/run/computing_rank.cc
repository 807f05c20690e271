// A rank that computes for seconds between two calls: computing_rank SECONDS FILE. The last rank is killed meanwhile,
// unless FILE is there already: it makes it first. So a job that is started again succeeds.
#include <signal.h>
#include <tutti/communicator.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>
#include <vector>

int main(int, char** argv) try {
  auto world = tutti::Communicator::from_env();
  std::vector<float> values(4, 1.0f);
  world.all_reduce(std::span(values), tutti::Op::sum);
  const int last = world.size() - 1;
  for (int other = 0; other < last; ++other) {  // none is in the call any more when the last rank is killed
    if (world.rank() == other) world.send(values.data(), 1, tutti::DType::float32, last);
    if (world.rank() == last) world.receive(values.data(), 1, tutti::DType::float32, other);
  }
  if (world.rank() == last && !std::ifstream(argv[2])) {
    std::ofstream(argv[2]) << "killed once";
    raise(SIGKILL);
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(std::atof(argv[1])));
  world.all_reduce(std::span(values), tutti::Op::sum);
  const char* const attempt = std::getenv("TUTTI_ATTEMPT");
  std::printf("rank %d, attempt %s: %g\n", world.rank(), attempt != nullptr ? attempt : "?", values[0]);
  return 0;
} catch (const tutti::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
