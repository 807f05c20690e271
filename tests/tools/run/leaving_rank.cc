// A rank for tests of `tutti run`: how it calls, and how it ends, as its argument says.
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>

#include "tutti/communicator.h"

// Calls when the process has left its job already.
struct Late {
  std::optional<tutti::Communicator> communicator;
  ~Late() {
    try {
      if (communicator) communicator->barrier();
    } catch (const tutti::Error& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
  }
};

namespace {

// Returns on rank 0 when all others have left their barrier: a rank that is still in it would notice rank 0's end.
void meet_behind_barrier(tutti::Communicator& world) {
  std::int32_t value = 1;
  for (int other = 1; other < world.size(); ++other) {
    if (world.rank() == other) world.send(&value, 1, tutti::DType::int32, 0);
    if (world.rank() == 0) world.receive(&value, 1, tutti::DType::int32, other);
  }
}

}  // namespace

int main(int, char** argv) try {
  const std::string way = argv[1];
  static Late late;
  static std::optional<tutti::Communicator> kept;
  tutti::Communicator world = tutti::Communicator::from_env();
  std::int32_t value = 1;
  if (way == "own roots" || way == "own roots, finalized") {
    for (int i = 0; i < 5; ++i) world.broadcast(std::span(&value, 1), world.rank());
    if (way == "own roots, finalized") world.finalize();
    return 0;
  }
  if (way == "own roots, exit" || way == "own roots of a thread, exit") {
    const auto call = [&] {
      for (int i = 0; i < 5; ++i) world.broadcast(std::span(&value, 1), world.rank());
    };
    if (way == "own roots, exit")
      call();
    else
      std::thread(call).join();
    std::exit(0);
  }
  static std::optional<tutti::Work> started;
  if (way == "started" || way == "started own roots") {
    if (way == "started") world.barrier();  // who exits waits for a second only, and another rank may still join
    started.emplace(way == "started" ? world.start_barrier()
                                     : world.start_broadcast(&value, 1, tutti::DType::int32, world.rank()));
    std::exit(0);
  }
  if (way == "call while exiting") {
    late.communicator.emplace(std::move(world));
    std::exit(0);
  }
  if (way == "one call more") {
    world.barrier();
    if (world.rank() == 0) world.broadcast(std::span(&value, 1), 0);
    return 0;
  }
  if (way == "dropped work") {
    tutti::Work work =
        world.rank() == 0 ? world.start_barrier() : world.start_broadcast(&value, 1, tutti::DType::int32, 1);
    return 0;
  }
  world.barrier();
  const bool is_first = world.rank() == 0;
  if (way == "rank 0 throws") meet_behind_barrier(world);
  if (way == "static") kept.emplace(std::move(world));
  if (way == "exit") std::exit(0);
  if (way == "quick_exit") std::quick_exit(0);
  if (way == "rank 0 throws" && is_first) throw std::runtime_error("that nobody catches");
  return 0;
} catch (const tutti::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
