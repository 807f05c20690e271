#include "staging/device_health.h"

#include <exception>
#include <utility>

namespace tutti::internal {

const Error* DeviceHealth::failure_of(const StagedCall& call, int device) {
  if (question_.valid() && question_.wait_for(std::chrono::seconds(0)) == std::future_status::ready)
    failed_.merge(question_.get());
  if (const auto found = failed_.find(device); found != failed_.end()) return &found->second;
  const auto now = std::chrono::steady_clock::now();
  if (question_.valid() || now < asked_ + kBetweenQuestions) return nullptr;
  asked_ = now;
  try {
    question_ = std::async(std::launch::async, [streams = call.streams()] {
      std::map<int, Error> failed;
      for (const Staging::Streams* one : streams)
        if (const std::optional<Error> error = one->out.failure()) failed.try_emplace(one->device, *error);
      return failed;
    });
  } catch (const std::exception&) {  // no thread for it now
  }
  return nullptr;
}

void DeviceHealth::abandon() { static_cast<void>(new auto(std::move(question_))); }

}  // namespace tutti::internal
