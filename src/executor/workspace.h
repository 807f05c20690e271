// Memory that operations of one communicator use in turn.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "executor/plan.h"
#include "executor/scratch.h"
#include "reduce/operands.h"

namespace tutti::internal {

struct Workspace {
  std::vector<ReduceSource> sources;
  std::vector<ReduceTarget> targets;
  std::vector<std::byte*> pushed;  // by send behind the reduce: where it was written to at the peer, or nullptr
  Scratch scratch;

  // Room for operations of `plan`. As Scratch::fit().
  void fit(const Plan& plan, const Scratch::Allocate& allocate) {
    sources.resize(std::max<std::size_t>(sources.size(), plan.most_sources));
    targets.resize(std::max<std::size_t>(targets.size(), plan.most_pushes + 1));
    pushed.resize(std::max<std::size_t>(pushed.size(), plan.most_pushes));
    scratch.fit(plan, allocate);
  }
};

}  // namespace tutti::internal
