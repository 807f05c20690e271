#include "control/meeting.h"

namespace tutti::internal {

std::string Meeting::text() const {
  std::string all;
  for (const Endpoint& place : places) all += (all.empty() ? "" : " or ") + place.text();
  return all;
}

std::string Meeting::advice_on(ErrorCode failure) const {
  switch (failure) {
    case ErrorCode::unreachable:
    case ErrorCode::timeout: return if_stale + if_missed;
    case ErrorCode::refused:
    case ErrorCode::invalid_argument: return if_stale;
    default: return {};
  }
}

}  // namespace tutti::internal
