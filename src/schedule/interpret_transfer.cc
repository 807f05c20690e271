#include "schedule/interpret_transfer.h"

#include <numeric>
#include <utility>

namespace tutti::internal {

std::vector<std::size_t> Dice::shuffled(std::size_t size) {
  std::vector<std::size_t> items(size);
  std::iota(items.begin(), items.end(), 0);
  for (std::size_t i = size; i > 1; --i) std::swap(items[i - 1], items[draw() % i]);
  return items;
}

void Transfer::move(Dice& dice) {
  const bool loading = buffered && !given_back;
  if (!loading && source.size() != target.size()) throw RunError{"a message of another length than its place"};
  if (!loading && (from.space == Space::scratch) != (to.space == Space::scratch))
    throw RunError{"a message of another type than its place"};
  if (!moving) left = dice.shuffled(source.size());
  moving = true;
  if (!left.empty()) {
    const std::size_t i = left.back();
    left.pop_back();
    (loading ? buffer[i] : *target[i]) = {read(buffered && !loading ? buffer[i] : *source[i]), true};
    return;
  }
  moving = false;
  given_back = true;
  arrived = !loading;
}

}  // namespace tutti::internal
