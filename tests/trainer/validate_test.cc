#include <gtest/gtest.h>

#include <cmath>

#include "trainer/train.h"
#include "tutti/error.h"

namespace tutti::trainer {
namespace {

const Dataset kFive{"five.csv", {1, 2, 3, 4, 5}, {2, 3, 5, 7, 11}};

std::string complaint_about(const Dataset& data, const TrainOptions& options) {
  try {
    validate(data, options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code, ErrorCode::invalid_argument);
    return error.what();
  }
  return "accepted";
}

TEST(Validate, ADegreeLargerThanThePointsAllowIsRefused) {
  EXPECT_EQ(complaint_about(kFive, {.degree = 3}), "accepted");
  EXPECT_EQ(
      complaint_about(kFive, {.degree = 4}),
      "five.csv: a polynomial of degree 4 needs 6 points or more (one more than its coefficients, so that there are "
      "residuals); there are 5");
  EXPECT_NE(complaint_about(kFive, {.degree = 2'147'483'647}).find("2147483649 points"), std::string::npos);
  EXPECT_EQ(complaint_about(kFive, {.degree = -1}), "the degree is -1; it should be 0 or more");
}

TEST(Validate, PointsAtTooFewPlacesAreRefused) {
  const Dataset same{"same.csv", {2, 2, 2, 2, 2}, {1, 2, 3, 4, 5}};
  EXPECT_EQ(complaint_about(same, {.degree = 1}),
            "same.csv: a polynomial of degree 1 needs 2 different x or more; all x are equal");
  EXPECT_EQ(complaint_about(same, {.degree = 0}), "accepted");
  const Dataset two{"two.csv", {1, 2, 1, 2, 1}, {1, 2, 3, 4, 5}};
  EXPECT_EQ(complaint_about(two, {.degree = 1}), "accepted");
  EXPECT_EQ(complaint_about(two, {.degree = 2}),
            "two.csv: a polynomial of degree 2 needs 3 different x or more; there are 2");
}

TEST(Validate, PointsThatAreNotFiniteOrCannotBeSquaredAreRefused) {
  for (double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL, 1e200}) {
    Dataset data = kFive;
    data.y[2] = bad;
    EXPECT_NE(complaint_about(data, {.degree = 1}), "accepted") << bad;
  }
  EXPECT_NE(complaint_about({"tiny", {1, 2, 3}, {1e-200, 1e-201, 0}}, {.degree = 1}), "accepted");
  EXPECT_EQ(complaint_about({"small", {1, 2, 3}, {1e-100, 1e-201, 0}}, {.degree = 1}), "accepted");
}

TEST(Validate, OptionsThatCannotBeServedAreRefusedInWords) {
  EXPECT_EQ(complaint_about(kFive, {.learning_rate = -1}),
            "the learning rate is -1.000000; it should be greater than 0 and finite");
  EXPECT_NE(complaint_about(kFive, {.learning_rate = std::nan("")}), "accepted");
  EXPECT_EQ(complaint_about(kFive, {.steps = 0}), "the number of steps is 0; it should be 1 or more");
  EXPECT_EQ(complaint_about(kFive, {.optimizer = OptimizerKind::sgd, .batch = 0}),
            "the batch holds 0 points; it should hold 1 or more");
  EXPECT_EQ(complaint_about(kFive, {.batch = 2}),
            "lbfgs needs all points at every step: leave out the batch, or train with adam or sgd");
  EXPECT_EQ(complaint_about(kFive, {.batch = 5}), "accepted");
}

}  // namespace
}  // namespace tutti::trainer
