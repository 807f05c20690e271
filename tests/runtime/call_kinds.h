// Calls of every kind, for tests of ranks that make different ones.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tutti/communicator.h"

namespace tutti::internal {

inline constexpr int kLastRank = -1, kOwnRank = -2;  // roots that depend on the rank

struct CallKind {
  const char* name;
  // On at least 1000 elements.
  void (*call)(Communicator&, std::vector<std::int64_t>&);
  const char* family = nullptr;  // kinds that differ by the root alone have one
  int root = 0;

  // Ranks whose calls are equal make the same call.
  std::pair<std::string, int> called(int rank, int size) const {
    const int from = root == kOwnRank ? rank : root == kLastRank ? size - 1 : root;
    return {family == nullptr ? name : family, family == nullptr ? 0 : from};
  }
};

// All kinds of calls, and of each something that differs from the one before. The last is no call.
extern const std::vector<CallKind> kCallKinds;

}  // namespace tutti::internal
