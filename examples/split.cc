// Ranks as a grid of two columns: sums along each row and along each column.
#include <tutti/communicator.h>

#include <cstdio>
#include <vector>

int main() {
  try {
    auto world = tutti::Communicator::from_env();
    const int row = world.rank() / 2, column = world.rank() % 2;

    // Ranks that pass the same color form a communicator, in the order of their keys.
    auto my_row = world.split(row, column);
    auto my_column = world.split(column, row);

    std::vector<int> in_row{world.rank()}, in_column{world.rank()};
    my_row.all_reduce(std::span(in_row), tutti::Op::sum);
    my_column.all_reduce(std::span(in_column), tutti::Op::sum);

    std::printf("rank %d: row %d of %d ranks has the sum %d, column %d of %d ranks has the sum %d\n", world.rank(), row,
                my_row.size(), in_row[0], column, my_column.size(), in_column[0]);
  } catch (const tutti::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
