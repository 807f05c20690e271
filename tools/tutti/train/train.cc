// tutti train -n 3 --data points.csv --degree 5: fits a polynomial, data-parallel.
#include "trainer/train.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>

#include "command.h"
#include "machine/gpu.h"
#include "machine/host.h"
#include "run/launch.h"
#include "trainer/cuda/gpu.h"
#include "tutti/communicator.h"

namespace tutti::internal::tools {
namespace {

using trainer::Progress;
using trainer::TrainOptions;
using trainer::TrainResult;

constexpr auto kProgressInterval = std::chrono::milliseconds(100);

struct Options {
  std::optional<int> ranks;
  std::string data;
  std::string transport = "auto";
  TrainOptions train;
  std::string basis = "chebyshev";
  std::string optimizer = "lbfgs";
  std::string device = "cpu";
  bool json = false;
};

// One line on stderr that is written over and over, where somebody is looking at it.
class ProgressLine {
 public:
  explicit ProgressLine(bool shown) : shown_(shown && isatty(STDERR_FILENO)) {}
  ~ProgressLine() {
    if (written_) std::fputs("\r\033[K", stderr);
  }
  void show(const Progress& progress) {
    const auto now = std::chrono::steady_clock::now();
    if (!shown_ || now - last_ < kProgressInterval) return;
    last_ = now;
    written_ = true;
    say_on_stderr(fmt::format("\r\033[Kstep {}  loss {:.6g}  gradient {:.2g}  {:.0f} steps/s", progress.step,
                              progress.loss, progress.gradient_norm, progress.steps_per_s));
    std::fflush(stderr);
  }

 private:
  bool shown_;
  bool written_ = false;
  std::chrono::steady_clock::time_point last_{};
};

void print_summary(const TrainResult& result, const trainer::Dataset& data, const TrainOptions& options) {
  fmt::print("{}: {} points, degree {}, {} basis, {}, on {} rank{}\n", data.name, data.size(), options.degree,
             to_string(options.basis), to_string(options.optimizer), result.ranks, result.ranks == 1 ? "" : "s");
  for (std::size_t power = 0; power < result.coefficients.size(); ++power) {
    fmt::print("  x^{:<3} {:>24.16g}\n", power, result.coefficients[power]);
  }
  fmt::print("residual standard deviation {:.15g}, after {} steps, {:.0f} a second\n", result.residual_sd, result.steps,
             result.steps_per_s);
  fmt::print("weights sha256 {}\n", result.weights_sha256);
}

// Ranks go round the GPUs.
int gpu_of(int rank) {
  const auto usable = require_gpus();
  return usable[static_cast<std::size_t>(rank) % usable.size()].index;
}

void train_as(Communicator& world, const trainer::Dataset& data, const Options& options) {
  const bool prints = world.rank() == 0;
  // Before the first call, so that a rank which gets no GPU tells the others at once, by leaving.
  const auto gpu = options.device == "cuda" ? trainer::make_gpu(gpu_of(world.rank())) : nullptr;
  TrainResult result;
  {
    ProgressLine line(prints && !options.json);
    result = trainer::train(
        world, data, options.train, [&](const Progress& progress) { line.show(progress); },
        gpu ? *gpu : trainer::cpu());
  }
  if (!prints) return;
  if (options.json)
    fmt::print("{}\n", result.to_json());
  else
    print_summary(result, data, options.train);
}

int run_train(Options& options) {
  options.train.basis = *trainer::parse_basis(options.basis);
  options.train.optimizer = *trainer::parse_optimizer(options.optimizer);
  if (options.device == "cuda" && options.ranks) require_gpu_of_children();  // said once, before there are ranks
  const trainer::Dataset data = trainer::read_csv(options.data);
  trainer::validate(data, options.train);
  if (options.transport == "inproc") {
    if (!options.ranks) throw UsageError("--transport inproc needs -n: its ranks are threads of one process");
    require_room(*options.ranks);
    Communicator::run_threads(*options.ranks, [&](Communicator& world) { train_as(world, data, options); });
    return 0;
  }
  if (const auto status = launch_self("tutti train", options.ranks)) return *status;
  Settings settings = Settings::from_env();
  settings.transport = options.transport;
  Communicator world = Communicator::join(settings);
  train_as(world, data, options);
  return 0;
}

}  // namespace

Subcommand add_train(CLI::App& app) {
  CLI::App* parser = app.add_subcommand("train", "Fit a polynomial to points, data-parallel");
  auto options = std::make_shared<Options>();
  parser
      ->add_option("-n,--ranks", options->ranks,
                   "ranks to start on this host; without it, this is one rank of a job that a launcher started")
      ->check(whole_number(1));
  parser->add_option("--data", options->data, "CSV file: x,y or columns named so")->required();
  parser->add_option("--degree", options->train.degree, "of the polynomial")->required()->check(whole_number(0, 1000));
  parser->add_option("--basis", options->basis, "chebyshev or monomial, x scaled to [-1, 1]")
      ->check(CLI::IsMember({"chebyshev", "monomial"}));
  parser->add_option("--optimizer", options->optimizer, "lbfgs, adam or sgd")
      ->check(CLI::IsMember({"lbfgs", "adam", "sgd"}));
  parser->add_option("--lr", options->train.learning_rate, "learning rate; else one that suits the optimizer");
  parser->add_option("--steps", options->train.steps, "at most so many")->check(whole_number(1));
  parser->add_option("--batch", options->train.batch, "points a step, of all ranks together; else all")
      ->check(whole_number(1));
  parser
      ->add_option("--transport", options->transport,
                   "auto, shm, tcp, verbs, else as TUTTI_TRANSPORT says; inproc: the ranks are threads of one process")
      ->check(CLI::IsMember({"auto", "shm", "tcp", "verbs", "inproc"}));
  parser
      ->add_option("--device", options->device,
                   "cpu or cuda: where the model is computed and its gradients are reduced; on cuda, "
                   "ranks go round the GPUs")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  parser->add_flag("--json", options->json, "print the result as one JSON object");
  return {parser, [options, parser] {
            if (parser->count("--transport") == 0) options->transport = Settings::from_env().transport;
            return run_train(*options);
          }};
}

}  // namespace tutti::internal::tools
