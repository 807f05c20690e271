#include "trainer/train.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "trainer/digest.h"
#include "trainer/thread_ranks.h"
#include "tutti/error.h"

namespace tutti::trainer {
namespace {

struct Certified {
  std::vector<double> coefficients;
  double residual_sd = 0;
};

Certified certified(const std::string& name) {
  std::ifstream in(NIST_DATA + name + ".certified.csv");
  Certified values;
  std::string line;
  std::getline(in, line);  // quantity,value
  while (std::getline(in, line)) values.coefficients.push_back(std::stod(line.substr(line.find(',') + 1)));
  values.residual_sd = values.coefficients.back();
  values.coefficients.pop_back();
  return values;
}

// What every rank returned.
std::vector<TrainResult> train_on(int ranks, const Dataset& data, const TrainOptions& options) {
  std::vector<TrainResult> results(ranks);
  ThreadRanks::run(ranks, [&](GradientSync& sync) { results[sync.rank()] = train(sync, data, options); });
  return results;
}

void expect_certified(const std::string& name, const TrainOptions& options) {
  const Dataset data = read_csv(NIST_DATA + name + ".csv");
  const Certified expected = certified(name);
  ASSERT_EQ(expected.coefficients.size(), options.degree + 1u);
  for (int ranks : {1, 2, 3, 5, 8}) {
    const TrainResult result = train_on(ranks, data, options).front();
    EXPECT_LT(std::abs(result.residual_sd / expected.residual_sd - 1), 1e-11) << ranks;
    for (std::size_t k = 0; k < expected.coefficients.size(); ++k) {
      EXPECT_LT(std::abs(result.coefficients[k] / expected.coefficients[k] - 1), 1e-10)
          << "x^" << k << ", ranks " << ranks;
    }
    EXPECT_LT(result.steps, 100);
  }
}

TEST(Nist, FilipIsFittedToTheCertifiedValues) { expect_certified("filip", {.degree = 10}); }

TEST(Nist, FilipIsFittedInTheMonomialBasisToo) { expect_certified("filip", {.degree = 10, .basis = Basis::monomial}); }

TEST(Nist, PontiusIsFittedToTheCertifiedValues) { expect_certified("pontius", {.degree = 2}); }

TEST(Nist, PontiusIsFittedByGradientDescent) {
  const TrainOptions options{.degree = 2, .optimizer = OptimizerKind::sgd};
  const TrainResult result = train_on(1, read_csv(NIST_DATA "pontius.csv"), options).front();
  const Certified expected = certified("pontius");
  EXPECT_NEAR(result.residual_sd / expected.residual_sd, 1, 1e-9);
  for (std::size_t k = 0; k < 3; ++k) EXPECT_NEAR(result.coefficients[k] / expected.coefficients[k], 1, 1e-8);
  EXPECT_EQ(result.steps, 10000);
}

TEST(Train, EveryRankEndsInTheSameBitsEveryTime) {
  const Dataset data = read_csv(NIST_DATA "filip.csv");
  for (const TrainOptions& options :
       {TrainOptions{.degree = 10}, TrainOptions{.degree = 10, .optimizer = OptimizerKind::adam, .steps = 50},
        TrainOptions{.degree = 4, .optimizer = OptimizerKind::sgd, .steps = 50, .batch = 9}}) {
    for (int ranks : {1, 2, 3, 5}) {
      const auto once = train_on(ranks, data, options), again = train_on(ranks, data, options);
      for (const auto& results : {once, again}) {
        for (const TrainResult& result : results) {
          EXPECT_EQ(result.weights, once[0].weights);
          EXPECT_EQ(result.weights_sha256, once[0].weights_sha256);
          EXPECT_EQ(result.coefficients, once[0].coefficients);
          EXPECT_EQ(result.loss, once[0].loss);
          EXPECT_EQ(result.steps, once[0].steps);
          EXPECT_EQ(result.ranks, ranks);
        }
      }
    }
  }
}

// y = 1 + 2 x - 3 x^2, exactly.
Dataset parabola(std::size_t points) {
  Dataset data{"parabola", {}, {}};
  for (std::size_t i = 0; i < points; ++i) {
    const double x = static_cast<double>(i) / 8;
    data.x.push_back(x);
    data.y.push_back(1 + 2 * x - 3 * x * x);
  }
  return data;
}

TEST(Train, EveryOptimizerFindsAnExactParabolaFromMiniBatchesOrAll) {
  for (const TrainOptions& options :
       {TrainOptions{.degree = 2}, TrainOptions{.degree = 2, .optimizer = OptimizerKind::sgd},
        TrainOptions{.degree = 2, .optimizer = OptimizerKind::sgd, .batch = 3},
        TrainOptions{.degree = 2, .optimizer = OptimizerKind::adam},
        TrainOptions{.degree = 2, .basis = Basis::monomial, .optimizer = OptimizerKind::sgd, .steps = 20000},
        TrainOptions{.degree = 2, .optimizer = OptimizerKind::adam, .learning_rate = 0.1, .batch = 4}}) {
    const TrainResult result = train_on(1, parabola(17), options).front();
    EXPECT_NEAR(result.coefficients[0], 1, 1e-6);
    EXPECT_NEAR(result.coefficients[1], 2, 1e-6);
    EXPECT_NEAR(result.coefficients[2], -3, 1e-6);
  }
}

TEST(Train, AMiniBatchStepDoesNotDependOnTheNumberOfRanksBeyondRounding) {
  const TrainOptions options{.degree = 2, .optimizer = OptimizerKind::sgd, .steps = 20, .batch = 5};
  const TrainResult alone = train_on(1, parabola(17), options).front();
  const TrainResult many = train_on(7, parabola(17), options).front();
  for (std::size_t k = 0; k < 3; ++k) EXPECT_NEAR(alone.weights[k], many.weights[k], 1e-12);
}

TEST(Train, RanksWithoutPointsTakePart) {
  const auto results = train_on(12, {"line", {1, 2, 3, 4}, {3, 5, 7, 9}}, {.degree = 1});
  for (const TrainResult& result : results) {
    EXPECT_NEAR(result.coefficients[0], 1, 1e-14);
    EXPECT_NEAR(result.coefficients[1], 2, 1e-14);
  }
}

TEST(Train, AConstantFitIsTheMeanAndItsStandardDeviation) {
  const Dataset data{"four", {1, 2, 3, 4}, {1, 2, 4, 5}};
  const TrainResult result = train_on(2, data, {.degree = 0}).front();
  EXPECT_NEAR(result.coefficients[0], 3, 1e-15);
  EXPECT_NEAR(result.loss, 2.5, 1e-15);
  EXPECT_NEAR(result.residual_sd, std::sqrt(10.0 / 3), 1e-15);
}

TEST(Train, AllZeroTargetsNeedNoTraining) {
  const TrainResult result = train_on(2, {"zero", {1, 2, 3, 4}, {0, 0, 0, 0}}, {.degree = 1}).front();
  EXPECT_EQ(result.coefficients, (std::vector<double>{0, 0}));
  EXPECT_EQ(result.residual_sd, 0);
}

TEST(Train, ProgressIsReportedAfterEveryStep) {
  std::vector<Progress> reports;
  SingleRank alone;
  const TrainOptions options{.degree = 2, .optimizer = OptimizerKind::sgd, .steps = 25};
  train(alone, parabola(17), options, [&](const Progress& progress) { reports.push_back(progress); });
  ASSERT_EQ(reports.size(), 25u);
  for (int i = 0; i < 25; ++i) EXPECT_EQ(reports[i].step, i + 1);
  EXPECT_LT(reports.back().loss, reports.front().loss);
  EXPECT_GT(reports.back().gradient_norm, 0);
  EXPECT_GT(reports.back().steps_per_s, 0);
}

TEST(Train, DivergenceIsAnErrorOnEveryRank) {
  std::atomic<int> told = 0;
  ThreadRanks::run(3, [&](GradientSync& sync) {
    const auto notice = [](const Progress& progress) {
      EXPECT_LT(progress.step, 200) << "it should have stopped by now";
    };
    try {
      train(sync, parabola(17), {.degree = 2, .optimizer = OptimizerKind::sgd, .learning_rate = 1e3, .steps = 200},
            notice);
    } catch (const Error& error) {
      EXPECT_EQ(error.code, ErrorCode::invalid_argument);
      EXPECT_TRUE(std::string(error.what()).starts_with("training diverged: the loss is not finite at step "))
          << error.what();
      ++told;
    }
  });
  EXPECT_EQ(told, 3);
}

TEST(Train, RanksWithDifferentPointsOrOptionsAreToldSo) {
  for (bool differ_in_points : {true, false}) {
    std::atomic<int> told = 0;
    ThreadRanks::run(3, [&](GradientSync& sync) {
      Dataset data = parabola(17);
      TrainOptions options{.degree = 2};
      if (sync.rank() == 1 && differ_in_points) data.y[16] += 1;
      if (sync.rank() == 1 && !differ_in_points) options.degree = 3;
      try {
        train(sync, data, options);
      } catch (const Error& error) {
        EXPECT_EQ(error.code, ErrorCode::mismatch);
        ++told;
      }
    });
    EXPECT_EQ(told, 3);
  }
}

TEST(Train, RanksThatEndInDifferentWeightsAreToldSo) {
  class Distorted : public GradientSync {
   public:
    explicit Distorted(GradientSync& sync) : sync_(sync) {}
    int rank() const override { return sync_.rank(); }
    int size() const override { return sync_.size(); }
    void sum(std::span<double> values) override {
      sync_.sum(values);
      if (rank() == 2) values[0] = std::nextafter(values[0], 0);
    }
    bool agree(std::uint64_t value) override { return sync_.agree(value); }

   private:
    GradientSync& sync_;
  };
  std::atomic<int> told = 0;
  ThreadRanks::run(3, [&](GradientSync& sync) {
    Distorted distorted(sync);
    try {
      train(distorted, parabola(17), {.degree = 2, .optimizer = OptimizerKind::sgd, .steps = 1});
    } catch (const Error& error) {
      EXPECT_EQ(error.code, ErrorCode::mismatch);
      ++told;
    }
  });
  EXPECT_EQ(told, 3);
}

TEST(Train, ErrorsOfTheCommunicatorPassThrough) {
  class Lost : public SingleRank {
    void sum(std::span<double>) override { throw Error(ErrorCode::peer_lost, "rank 0: rank 1 is gone", 0, 1); }
  };
  Lost lost;
  try {
    train(lost, parabola(17), {.degree = 2});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, ErrorCode::peer_lost);
    EXPECT_EQ(error.peer, 1);
  }
}

TEST(TrainResult, IsOneLineOfJsonWhoseNumbersReadBackAsTheSameDoubles) {
  TrainResult result;
  result.ranks = 3;
  result.steps = 17;
  result.loss = 9.7055046606456069e-06;
  result.residual_sd = 0.003348010513245438;
  result.coefficients = {-1467.489614229796, 0, 1.0 / 3};
  result.steps_per_s = 12345.678901234567;
  result.weights_sha256 = "abc";
  const std::string text = result.to_json();
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_TRUE(text.starts_with("{\"ranks\":3,\"steps\":17,\"loss\":")) << text;
  const auto object = nlohmann::json::parse(text);
  EXPECT_EQ(object.size(), 7u);
  EXPECT_EQ(object["loss"].get<double>(), result.loss);
  EXPECT_EQ(object["residual_sd"].get<double>(), result.residual_sd);
  EXPECT_EQ(object["coefficients"].get<std::vector<double>>(), result.coefficients);
  EXPECT_EQ(object["steps_per_s"].get<double>(), result.steps_per_s);
  EXPECT_EQ(object["weights_sha256"], "abc");
}

TEST(Digest, IsSha256OfTheBytesLeastSignificantFirst) {
  const auto hex = [](const std::vector<double>& values) {
    Digest digest;
    digest.add(values);
    return std::move(digest).hex();
  };
  EXPECT_EQ(hex({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex({1.0, -2.5}), "f138ae8a7b9a72de60b736f59d2474dd5b2357f5817f0dfa3309f5da5e629d87");
  EXPECT_EQ(hex(std::vector<double>(1000, 0.1)), "36efd0acbb8e9383047d9dd5ebf662ce6eadd71dcffc3b6bb22dbd34a6bada5b");
}

}  // namespace
}  // namespace tutti::trainer
