#include "trainer/data_parallel.h"

#include <array>

namespace tutti::trainer {

void DataParallel::sum(std::span<double> values) { communicator_.all_reduce(values, Op::sum); }

bool DataParallel::agree(std::uint64_t value) {
  std::array<std::uint64_t, 2> greatest{value, ~value};  // the greatest complement is that of the least value
  communicator_.all_reduce(std::span<std::uint64_t>(greatest), Op::max);
  return greatest[0] == ~greatest[1];
}

}  // namespace tutti::trainer
