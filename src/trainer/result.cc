#include <nlohmann/json.hpp>

#include "trainer/train.h"

namespace tutti::trainer {

std::string TrainResult::to_json() const {
  const nlohmann::ordered_json object = {
      {"ranks", ranks},
      {"steps", steps},
      {"loss", loss},
      {"residual_sd", residual_sd},
      {"coefficients", coefficients},
      {"steps_per_s", steps_per_s},
      {"weights_sha256", weights_sha256},
  };
  return object.dump();
}

}  // namespace tutti::trainer
