// What goes wrong, and what still works then. Rank 1 makes two mistakes.
#include <tutti/communicator.h>

#include <cstdio>
#include <vector>

int main() {
  try {
    auto world = tutti::Communicator::from_env();
    auto others = world.split(0);
    std::vector<float> values(8, 1);

    // The first is found before anything is sent: only rank 1 hears of it, and the communicator still works.
    try {
      if (world.rank() == 1)
        world.all_reduce(values.data(), values.data() + 1, 4, tutti::DType::float32, tutti::Op::sum);
    } catch (const tutti::Error& error) {
      std::printf("rank %d: %s: %s\n", world.rank(), tutti::to_string(error.code), error.what());
    }
    world.all_reduce(std::span(values), tutti::Op::sum);
    others.barrier();  // until all are through with that: a failure ends the calls that are under way

    // The second is found by messages: all ranks hear of it, and this communicator has failed for good.
    try {
      world.all_reduce(std::span(values).first(world.rank() == 1 ? 4 : 8), tutti::Op::sum);
    } catch (const tutti::Error& error) {
      std::printf("rank %d: %s: %s\n", world.rank(), tutti::to_string(error.code), error.what());
    }

    // Another communicator of the same ranks goes on.
    std::vector<int> count{1};
    others.all_reduce(std::span(count), tutti::Op::sum);
    std::printf("rank %d: %d ranks are still there\n", world.rank(), count[0]);
  } catch (const tutti::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
