// The ranks go on after one of them has died: the highest does, in the middle of its work. Run it by
//
//     tutti run --keep-going -n 4 shrink
#include <tutti/communicator.h>

#include <csignal>
#include <cstdio>
#include <vector>

int main() {
  try {
    auto world = tutti::Communicator::from_env();
    const bool dies = world.rank() > 0 && world.rank() == world.size() - 1;
    long total = 0;
    for (int step = 0; step < 10;) {
      if (dies && step == 5) std::raise(SIGKILL);
      try {
        // A call that fails may have succeeded on other ranks. So the result says which step it is of.
        std::vector<long> values{step, 1};
        world.all_reduce(std::span(values), tutti::Op::max);
        step = static_cast<int>(values[0]) + 1;
        total += values[1];
      } catch (const tutti::Error& error) {
        if (error.code != tutti::ErrorCode::peer_lost) throw;
        std::printf("rank %d: %s\n", world.rank(), error.what());
        world = world.shrink();
      }
    }
    std::printf("rank %d of %d has made all steps\n", world.rank(), world.size());
    world.finalize();
    return total >= 9 ? 0 : 1;
  } catch (const tutti::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
