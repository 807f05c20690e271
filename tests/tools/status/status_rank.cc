// A rank for tests of `tutti status`: what holds its job up, as its argument says. It stays so for a minute, unless its
// first argument's file appears: then the rank that holds up the others goes on.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "tutti/communicator.h"

namespace {

void sleep_until_there_is(const std::string& file) {
  for (int i = 0; i < 6000 && ::access(file.c_str(), F_OK) != 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

}  // namespace

int main(int, char** argv) try {
  const std::string file = argv[1], way = argv[2];
  tutti::Communicator world = tutti::Communicator::from_env();
  const int rank = world.rank(), size = world.size();
  std::vector<float> values(2);
  for (int i = 0; i < 3; ++i) world.all_reduce(std::span(values), tutti::Op::max);
  if (rank == 1 && (way == "rank 1 sleeps" || way == "a timeout")) sleep_until_there_is(file);
  if (way == "all sleep") sleep_until_there_is(file);
  if (way == "a cycle") world.receive(values.data(), 2, tutti::DType::float32, (rank + 1) % size);
  world.all_reduce(std::span(values), tutti::Op::sum);
  if (way == "mismatch") world.broadcast(std::span(values).first(1 + rank), 0);
  return 0;
} catch (const tutti::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 3;
}
