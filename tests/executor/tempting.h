// Small schedules written so that a mistake in fusing does harm, each in one way that the catalogue's give no chance
// to.
#pragma once

#include <string_view>
#include <vector>

#include "collectives/catalogue.h"

namespace tutti::internal {

struct Tempting {
  std::string_view what;  // to fuse wrongly
  int ranks;
  AlgorithmEntry entry;
};

std::vector<Tempting> tempting();

}  // namespace tutti::internal
