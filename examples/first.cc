// Every rank brings four numbers; all of them leave with the same four sums.
#include <tutti/communicator.h>

#include <cstdio>
#include <vector>

int main() {
  try {
    auto world = tutti::Communicator::from_env();  // who am I, and who else is there?

    std::vector<float> values(4, 1.0f / (1 + world.rank()));
    world.all_reduce(std::span(values), tutti::Op::sum);

    std::printf("rank %d of %d: the sum is %.9g\n", world.rank(), world.size(), values[0]);
  } catch (const tutti::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
