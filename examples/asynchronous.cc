// A training step whose gradients travel while the next ones are still being computed.
#include <tutti/communicator.h>

#include <cstdio>
#include <vector>

namespace {

// Stands for the backward pass of one layer.
std::vector<float> gradient_of(int layer, int rank) { return std::vector<float>(1 << 16, layer + 0.5f * rank); }

}  // namespace

int main() {
  try {
    auto world = tutti::Communicator::from_env();

    std::vector<std::vector<float>> gradients;
    gradients.reserve(4);  // a started call's buffer must stay where it is
    std::vector<tutti::Work> started;
    for (int layer = 3; layer >= 0; --layer) {
      gradients.push_back(gradient_of(layer, world.rank()));
      std::vector<float>& gradient = gradients.back();
      started.push_back(world.start_all_reduce(gradient.data(), gradient.data(), gradient.size(), tutti::DType::float32,
                                               tutti::Op::avg));
      for (tutti::Work& work : started) work.test();  // moves what can be moved, between two computations
    }
    for (tutti::Work& work : started) work.wait();  // throws if the call has failed

    std::printf("rank %d: gradients of layers 3 to 0: %g %g %g %g\n", world.rank(), gradients[0][0], gradients[1][0],
                gradients[2][0], gradients[3][0]);
  } catch (const tutti::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
