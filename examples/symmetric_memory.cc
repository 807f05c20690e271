// Memory that the ranks of a host share: large calls in it need no copy through a ring.
#include <tutti/communicator.h>

#include <cstdio>

int main() {
  try {
    auto world = tutti::Communicator::from_env();
    constexpr std::size_t kCount = 1 << 20;

    // Collective: every rank asks for the same number of bytes.
    tutti::Memory memory = world.allocate(2 * kCount * sizeof(float));
    const auto in = memory.as<float>().first(kCount), out = memory.as<float>().last(kCount);
    for (std::size_t i = 0; i < kCount; ++i) in[i] = static_cast<float>(i % 7 + world.rank());

    world.all_reduce(in.data(), out.data(), kCount, tutti::DType::float32, tutti::Op::max);

    std::printf("rank %d: the largest first element is %g, the largest last one %g\n", world.rank(), out[0],
                out[kCount - 1]);
  } catch (const tutti::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
