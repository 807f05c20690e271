#include "collectives/requirements.h"

#include <fmt/format.h>

#include <algorithm>

#include "tutti/error.h"

namespace tutti {
namespace {

void require(bool holds, std::string_view algorithm, const std::string& otherwise) {
  if (!holds) throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", algorithm, otherwise));
}

}  // namespace

void require_valid(std::string_view algorithm, int rank, const Layout& layout, const Message& message) {
  const int ranks = layout.ranks();
  require(ranks >= 1 && ranks <= kMostRegions, algorithm,
          fmt::format("takes 1 to {} ranks, since a schedule numbers slices in 16 bits; got {}", kMostRegions, ranks));
  require(rank >= 0 && rank < ranks, algorithm, fmt::format("there is no rank {} among {}", rank, ranks));
  require(message.root >= 0 && message.root < ranks, algorithm, fmt::format("there is no root {} among {} ranks", message.root, ranks));
  require(message.chunks >= 1 && message.chunks <= kMostRegions, algorithm,
          fmt::format("takes 1 to {} chunks; got {}", kMostRegions, message.chunks));
  const auto& first = layout.first_leaf;
  require(static_cast<int>(first.size()) == ranks + 1 && first.front() == 0 && std::is_sorted(first.begin(), first.end()), algorithm,
          fmt::format("the leaf map of {} ranks needs {} entries that ascend from 0", ranks, ranks + 1));
  require(layout.leaves() >= 1 && layout.leaves() <= kMostRegions, algorithm,
          fmt::format("takes 1 to {} leaves; got {}", kMostRegions, layout.leaves()));
}

void require_one_leaf_each(std::string_view algorithm, const Layout& layout) {
  for (int rank = 0; rank < layout.ranks(); ++rank)
    require(layout.leaves_of(rank) == 1, algorithm,
            fmt::format("takes exactly one leaf a rank, but rank {} holds {}; one_shot, two_shot, sliced_tree and binomial_tree "
                        "take any number",
                        rank, layout.leaves_of(rank)));
}

}  // namespace tutti
