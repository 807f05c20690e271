// Draws of a plan, from its seed.
#pragma once

#include <random>
#include <vector>

namespace tutti::internal {

class FaultDice {
 public:
  explicit FaultDice(unsigned seed) : random_(seed) {}
  int below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }
  bool percent(int chance) { return below(100) < chance; }
  template <class T>
  T one_of(const std::vector<T>& list) {
    return list[static_cast<std::size_t>(below(static_cast<int>(list.size())))];
  }
  template <class T>
  T take(std::vector<T>& list) {
    const int index = below(static_cast<int>(list.size()));
    const T taken = list[static_cast<std::size_t>(index)];
    list.erase(list.begin() + index);
    return taken;
  }

 private:
  std::mt19937 random_;
};

}  // namespace tutti::internal
