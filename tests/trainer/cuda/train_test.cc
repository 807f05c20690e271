// Training on a GPU beside the CPU: the same weights, and the gradients reduced to the same bits. On a fake
// device, and on a real one.
#include "trainer/train.h"

#include "cuda/memory.h"
#include "trainer/cuda/on_gpu.h"
#include "trainer/data_parallel.h"

namespace tutti::trainer {
namespace {

// Keeps what each all-reduce was given and gave, and where it was.
class Watched : public GradientSync {
 public:
  Watched(GradientSync& sync, Device& device) : sync_(sync), device_(device) {}
  int rank() const override { return sync_.rank(); }
  int size() const override { return sync_.size(); }
  void sum(std::span<double> values) override {
    kinds.push_back(internal::cuda::location_of(values.data()).kind);
    given.push_back(read(values));
    sync_.sum(values);
    got.push_back(read(values));
  }
  bool agree(std::uint64_t value) override { return sync_.agree(value); }

  std::vector<MemoryKind> kinds;
  std::vector<std::vector<double>> given, got;

 private:
  std::vector<double> read(std::span<double> values) {
    std::vector<double> copy(values.size());
    device_.read(copy, values.data());
    return copy;
  }
  GradientSync& sync_;
  Device& device_;
};

struct Seen {
  TrainResult result;
  std::vector<MemoryKind> kinds;
  std::vector<std::vector<double>> given, got;
};

class GpuTraining : public OnGpu {
 protected:
  // What every rank has seen.
  std::vector<Seen> run(bool on_gpu, int ranks, const TrainOptions& options, const char* transport) {
    const Dataset data = read_csv(options.degree > 2 ? NIST_DATA "filip.csv" : NIST_DATA "pontius.csv");
    std::vector<Seen> runs(static_cast<std::size_t>(ranks));
    Communicator::run_threads(
        ranks,
        [&](Communicator& world) {
          const auto own = on_gpu ? gpu() : nullptr;
          Device& device = own ? *own : cpu();
          DataParallel parallel(world);
          Watched sync(parallel, device);
          Seen& mine = runs[static_cast<std::size_t>(world.rank())];
          mine.result = train(sync, data, options, {}, device);
          mine.kinds = sync.kinds;
          mine.given = sync.given;
          mine.got = sync.got;
        },
        transport);
    return runs;
  }

  void expect_the_weights_of_the_cpu(const TrainOptions& options, const char* transport = "inproc") {
    for (const int ranks : {1, 2, 3}) {
      const auto here = run(false, ranks, options, transport), there = run(true, ranks, options, transport);
      for (std::size_t r = 0; r < here.size(); ++r) {
        EXPECT_EQ(there[r].result.weights_sha256, here[0].result.weights_sha256) << "rank " << r << " of " << ranks;
        EXPECT_EQ(there[r].result.weights, here[0].result.weights);
        EXPECT_EQ(there[r].result.coefficients, here[0].result.coefficients);
        EXPECT_EQ(there[r].result.loss, here[0].result.loss);
        EXPECT_EQ(there[r].result.steps, here[0].result.steps);
        EXPECT_EQ(there[r].given, here[r].given) << "gradients and losses of each step";
        EXPECT_EQ(there[r].got, here[r].got) << "their sums";
        for (const MemoryKind kind : there[r].kinds) EXPECT_EQ(kind, MemoryKind::device);
      }
    }
  }
};

TEST_F(GpuTraining, LbfgsEndsInTheWeightsOfTheCpu) {
  expect_the_weights_of_the_cpu({.degree = 10});
  expect_the_weights_of_the_cpu({.degree = 10, .basis = Basis::monomial});
}
TEST_F(GpuTraining, AdamEndsInTheWeightsOfTheCpu) {
  expect_the_weights_of_the_cpu({.degree = 10, .optimizer = OptimizerKind::adam, .steps = 30});
}
TEST_F(GpuTraining, SgdOverMiniBatchesEndsInTheWeightsOfTheCpu) {
  expect_the_weights_of_the_cpu({.degree = 2, .optimizer = OptimizerKind::sgd, .steps = 30, .batch = 9});
}
TEST_F(GpuTraining, RanksThatMeetOverATransportDoTheSame) {
  expect_the_weights_of_the_cpu({.degree = 10}, "shm");
  expect_the_weights_of_the_cpu({.degree = 2}, "tcp");
}

// A rank is free to train where it likes.
TEST_F(GpuTraining, ARankOnTheCpuAndOneOnTheGpuEndInTheSameBits) {
  const Dataset data = read_csv(NIST_DATA "filip.csv");
  const std::string expected = run(false, 2, {.degree = 10}, "inproc").front().result.weights_sha256;
  Communicator::run_threads(2, [&](Communicator& world) {
    const auto own = world.rank() == 1 ? gpu() : nullptr;
    EXPECT_EQ(train(world, data, {.degree = 10}, {}, own ? *own : cpu()).weights_sha256, expected);
  });
}

TEST_F(GpuTraining, FindsTheCertifiedValuesOfPontius) {
  const TrainResult result = run(true, 2, {.degree = 2}, "inproc").front().result;
  EXPECT_NEAR(result.residual_sd / 2.05177424076185e-04, 1, 1e-9);
  EXPECT_NEAR(result.coefficients[1] / 7.32059160401003e-07, 1, 1e-8);
}

}  // namespace
}  // namespace tutti::trainer
