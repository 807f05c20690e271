// The highest rank dies in the middle of its work, and the others go on. Run it by
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
    for (int step = 0; step < 10;) {
      if (dies && step == 5) std::raise(SIGKILL);
      try {
        // A call that fails here may have succeeded on another rank. So the ranks agree which step comes next.
        std::vector<int> furthest{step};
        world.all_reduce(std::span(furthest), tutti::Op::max);
        step = furthest[0] + 1;
      } catch (const tutti::Error& error) {
        if (error.code != tutti::ErrorCode::peer_lost) throw;
        std::printf("rank %d: %s\n", world.rank(), error.what());
        world = world.shrink();
      }
    }
    std::printf("rank %d of %d has made all steps\n", world.rank(), world.size());
    world.finalize();
  } catch (const tutti::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
