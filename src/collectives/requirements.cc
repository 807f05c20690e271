#include "collectives/requirements.h"

#include <fmt/format.h>

#include <algorithm>

#include "tutti/error.h"

namespace tutti::internal {
namespace {

[[noreturn]] void refuse(std::string_view algorithm, const std::string& why) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", algorithm, why));
}

void require_leaf_map(std::string_view algorithm, const Layout& layout) {
  const std::vector<int>& first = layout.first_leaf;
  const int entries = layout.ranks() + 1;
  if (static_cast<int>(first.size()) != entries || first.front() != 0 || !std::is_sorted(first.begin(), first.end()))
    refuse(algorithm,
           fmt::format("the leaf map of {} ranks needs {} entries that ascend from 0", entries - 1, entries));
  if (layout.leaves() < 1 || layout.leaves() > kMaxRegions)
    refuse(algorithm, fmt::format("takes 1 to {} leaves; got {}", kMaxRegions, layout.leaves()));
}

}  // namespace

void require_valid(std::string_view algorithm, int rank, const Layout& layout, const Message& message) {
  const int ranks = layout.ranks();
  if (ranks < 1 || ranks > kMaxRegions)
    refuse(algorithm,
           fmt::format("takes 1 to {} ranks, since a schedule numbers slices in 16 bits; got {}", kMaxRegions, ranks));
  if (rank < 0 || rank >= ranks) refuse(algorithm, fmt::format("there is no rank {} among {}", rank, ranks));
  if (message.root < 0 || message.root >= ranks)
    refuse(algorithm, fmt::format("there is no root {} among {} ranks", message.root, ranks));
  if (message.chunks < 1 || message.chunks > kMaxRegions)
    refuse(algorithm, fmt::format("takes 1 to {} chunks; got {}", kMaxRegions, message.chunks));
  require_leaf_map(algorithm, layout);
}

void require_one_leaf_each(std::string_view algorithm, const Layout& layout) {
  for (int rank = 0; rank < layout.ranks(); ++rank)
    if (layout.leaves_of(rank) != 1)
      refuse(algorithm,
             fmt::format("takes exactly one leaf a rank, but rank {} holds {}; tutti plan --list says which algorithms "
                         "take any number",
                         rank, layout.leaves_of(rank)));
}

}  // namespace tutti::internal
