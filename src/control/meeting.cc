#include "control/meeting.h"

namespace tutti::internal {

std::string Meeting::text() const {
  std::string all;
  for (const Endpoint& place : places) all += (all.empty() ? "" : " or ") + place.text();
  return all;
}

}  // namespace tutti::internal
