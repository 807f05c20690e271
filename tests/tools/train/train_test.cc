#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "brief.h"
#include "tools/shell.h"

namespace tutti::internal::tools {
namespace {

using testing::HasSubstr;

std::vector<double> certified(const std::string& path) {
  std::ifstream file(path);
  std::vector<double> values;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("b") || line.starts_with("residual_sd"))
      values.push_back(std::stod(line.substr(line.find(',') + 1)));
  }
  return values;  // the coefficients, lowest first, and last the residual standard deviation
}

nlohmann::json train(const std::string& words) {
  const Result run = shell("$TUTTI train --json " + words);
  EXPECT_EQ(run.status, 0) << words << "\n" << run.err;
  return nlohmann::json::parse(run.out);
}

void expect_certified(const std::string& name, int degree) {
  const auto truth = certified(NIST_DATA + name + ".certified.csv");
  ASSERT_EQ(truth.size(), static_cast<std::size_t>(degree) + 2);
  const auto fit = train("-n 3 --data " NIST_DATA + name + ".csv --degree " + std::to_string(degree));
  EXPECT_NEAR(fit["residual_sd"].get<double>() / truth.back(), 1, 1e-9);
  for (int power = 0; power <= degree; ++power) {
    EXPECT_NEAR(fit["coefficients"][power].get<double>() / truth[power], 1, 1e-8) << name << " x^" << power;
  }
}

TEST(Train, ThreeRanksFindTheCertifiedFilip) { expect_certified("filip", 10); }
TEST(Train, ThreeRanksFindTheCertifiedPontius) { expect_certified("pontius", 2); }

TEST(Train, WeightsAreTheSameBitsOverEveryTransport) {
  for (const char* ranks : kBrief ? std::vector{"3"} : std::vector{"1", "2", "4"}) {
    const std::string words = std::string("--data " NIST_DATA "filip.csv --degree 10 -n ") + ranks + " --transport ";
    const auto inproc = train(words + "inproc")["weights_sha256"];
    EXPECT_EQ(inproc, train(words + "shm")["weights_sha256"]) << ranks;
    EXPECT_EQ(inproc, train(words + "tcp")["weights_sha256"]) << ranks;
  }
}

TEST(Train, SaysWhatItFoundToPeople) {
  const Result run = shell("$TUTTI train -n 2 --data " NIST_DATA "pontius.csv --degree 2");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("40 points, degree 2, chebyshev basis, lbfgs, on 2 ranks"));
  EXPECT_THAT(run.out, HasSubstr("residual standard deviation 0.000205177424076"));
}

TEST(Train, WrongInputIsSaidOnce) {
  const std::string csv =
      "file=$(mktemp); printf '%b' \"$CONTENT\" > $file; $TUTTI train -n 3 --data $file --degree $DEGREE; "
      "status=$?; rm $file; exit $status";
  const auto fit = [&](const std::string& content, const std::string& degree) {
    return shell("CONTENT='" + content + "'; DEGREE=" + degree + "; " + csv);
  };
  for (const Result& run :
       {fit("1,2\\n2,three\\n3,4\\n", "1"), fit("1,2\\n2,nan\\n3,4\\n", "1"), fit("1,2\\n2,3\\n", "2"), fit("", "1"),
        shell("$TUTTI train -n 3 --data /no/such/file --degree 1")}) {
    EXPECT_EQ(run.status, 2) << run.err;
    EXPECT_THAT(run.err, testing::StartsWith("tutti train: "));
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
    EXPECT_EQ(run.out, "");
  }
}

TEST(Train, WrongOptionsAreRefused) {
  constexpr const char* kOverThreads = "--data " NIST_DATA "filip.csv --degree 2 --transport inproc";
  for (const char* words : {"", "--data x.csv", "--degree 2", "--data x.csv --degree two", "--data x.csv --degree -1",
                            "--data x.csv --degree 1 --basis sine", "--data x.csv --degree 1 --frobnicate",
                            kOverThreads, "--data x.csv --degree 1 -n 0"}) {
    const Result run = shell(std::string("$TUTTI train ") + words);
    EXPECT_EQ(run.status, 2) << words;
    EXPECT_THAT(run.err, testing::StartsWith("tutti train: ")) << words;
  }
}

// What is trained and measured moves as a program's of the same environment would.
TEST(Train, TheEnvironmentSaysTheTransportWhereTheCommandLineDoesNot) {
  const std::string bench = "$TUTTI bench barrier -n 2 --rounds 1 --iterations 1 --json";
  EXPECT_NE(shell("TUTTI_TRANSPORT=tcp " + bench).out.find("\"tcp\""), std::string::npos);
  EXPECT_EQ(shell("TUTTI_TRANSPORT=tcp " + bench + " --transport shm").out.find("\"tcp\""), std::string::npos);
  EXPECT_EQ(shell("TUTTI_TRANSPORT=pigeon " + bench).status, 2);
  EXPECT_EQ(shell("TUTTI_TRANSPORT=pigeon $TUTTI train -n 2 --data " NIST_DATA "pontius.csv --degree 2").status, 2);
}

}  // namespace
}  // namespace tutti::internal::tools
