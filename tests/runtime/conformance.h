// Calls of the public API held against the plain statement of each collective (shapes.h), for tests over any transport.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "collectives/catalogue.h"
#include "runtime/shapes.h"
#include "types/kinds.h"

namespace tutti::internal {

// The call as users write it.
inline Work started(Communicator& world, const Shape& it, const void* in, void* out, const CallOptions& how) {
  switch (it.collective) {
    case Collective::all_reduce: return world.start_all_reduce(in, out, it.count, it.dtype, it.op, how);
    case Collective::reduce_scatter: return world.start_reduce_scatter(in, out, it.count, it.dtype, it.op, how);
    case Collective::all_gather: return world.start_all_gather(in, out, it.count, it.dtype, how);
    case Collective::broadcast: return world.start_broadcast(in, out, it.count, it.dtype, it.root, how);
    case Collective::reduce: return world.start_reduce(in, out, it.count, it.dtype, it.op, it.root, how);
    case Collective::gather: return world.start_gather(in, out, it.count, it.dtype, it.root, how);
    case Collective::scatter: return world.start_scatter(in, out, it.count, it.dtype, it.root, how);
    case Collective::scan: return world.start_scan(in, out, it.count, it.dtype, it.op, how);
    case Collective::exclusive_scan: return world.start_exclusive_scan(in, out, it.count, it.dtype, it.op, how);
    case Collective::transfer:
      return AnyCall::start(
          world, {.collective = it.collective, .dtype = it.dtype, .algorithm = how.algorithm, .count = it.count}, in,
          out, how.stream);
    case Collective::all_to_all: return world.start_all_to_all(in, out, it.count, it.dtype, how);
    case Collective::barrier: break;
  }
  return world.start_barrier(how);
}
inline void blocking(Communicator& world, const Shape& it, const void* in, void* out, const CallOptions& how) {
  switch (it.collective) {
    case Collective::all_reduce: return world.all_reduce(in, out, it.count, it.dtype, it.op, how);
    case Collective::reduce_scatter: return world.reduce_scatter(in, out, it.count, it.dtype, it.op, how);
    case Collective::all_gather: return world.all_gather(in, out, it.count, it.dtype, how);
    case Collective::broadcast: return world.broadcast(in, out, it.count, it.dtype, it.root, how);
    case Collective::reduce: return world.reduce(in, out, it.count, it.dtype, it.op, it.root, how);
    case Collective::gather: return world.gather(in, out, it.count, it.dtype, it.root, how);
    case Collective::scatter: return world.scatter(in, out, it.count, it.dtype, it.root, how);
    case Collective::scan: return world.scan(in, out, it.count, it.dtype, it.op, how);
    case Collective::exclusive_scan: return world.exclusive_scan(in, out, it.count, it.dtype, it.op, how);
    case Collective::transfer: return started(world, it, in, out, how).wait();
    case Collective::all_to_all: return world.all_to_all(in, out, it.count, it.dtype, how);
    case Collective::barrier: return world.barrier(how);
  }
}

struct Form {
  Algorithm algorithm;
  bool in_place, starts;
};

inline constexpr std::size_t kGuard = 64;  // bytes around what the call may touch, and what may not be touched at all

// A rank's input and output in one piece of memory, all of which but the output must be as it was.
inline void expect_right(Communicator& world, const Shape& shape, const Form& form,
                         const std::vector<std::byte>& right) {
  const auto mine = random_input(world.rank(), input_elems(shape, world.size(), world.rank()), shape.dtype);
  const std::ptrdiff_t shift = in_place_shift(shape, world.rank());
  const std::size_t in_at = kGuard + static_cast<std::size_t>(std::max<std::ptrdiff_t>(form.in_place ? -shift : 0, 0));
  const std::size_t out_at = form.in_place ? static_cast<std::size_t>(static_cast<std::ptrdiff_t>(in_at) + shift)
                                           : (in_at + mine.size() + kGuard) / 64 * 64 + 64;
  std::vector<std::byte> memory(std::max(in_at + mine.size(), out_at + right.size()) + kGuard, std::byte{0x5a});
  if (!mine.empty()) std::memcpy(&memory[in_at], mine.data(), mine.size());
  auto want = memory;
  if (!right.empty()) std::memcpy(&want[out_at], right.data(), right.size());
  // A rank that has no input, or no output, may pass anything.
  std::byte* const held = mine.empty() ? memory.data() + out_at : memory.data() + in_at;
  void* const any[] = {nullptr, held, held + 3, reinterpret_cast<void*>(std::uintptr_t{0xdeadbeef13})};
  void* const nothing = any[(shape.count + static_cast<std::size_t>(world.rank())) % 4];
  void* const in = mine.empty() ? nothing : &memory[in_at];
  void* const out = right.empty() ? nothing : &memory[out_at];
  const CallOptions how{.algorithm = form.algorithm};
  const auto before = memory;
  // A blocking call is made twice: the second may go another way (src/executor/at_once.h).
  for (int call = 0; call < (form.starts ? 1 : 2); ++call) {
    memory = before;
    form.starts ? started(world, shape, in, out, how).wait() : blocking(world, shape, in, out, how);
    ASSERT_TRUE(memory == want) << name_of(shape, world.size()) << ", " << to_string(shape.op) << ", root "
                                << shape.root << ", " << to_string(form.algorithm)
                                << (form.in_place ? ", in place" : "") << (form.starts ? ", started" : "") << ", call "
                                << call << ", rank " << world.rank();
  }
}

inline std::vector<Algorithm> algorithms_of(Collective collective, int ranks) {
  std::vector<Algorithm> all{Algorithm::automatic};
  for (const AlgorithmEntry& entry : catalogue())
    if (entry.collective == collective && (entry.canonical || ranks <= 2)) all.push_back(entry.algorithm);
  return all;
}

// The whole product: every collective by every algorithm, for every type, operator and root, and counts that are empty,
// small, uneven and long, in every form.
inline void expect_every_call_right(Communicator& world) {
  const int ranks = world.size();
  for (const Collective collective : kWithBuffers)
    for (const DType dtype : all_dtypes())
      for (const Op op : ops_of(dtype))
        for (const std::size_t count :
             {std::size_t{0}, std::size_t{1}, static_cast<std::size_t>(ranks) + 1, std::size_t{1031}})
          for (int root = 0; root < ranks; ++root) {
            const Shape shape{collective, count, dtype, op, root};
            const auto right = expected(shape, ranks)[static_cast<std::size_t>(world.rank())];
            for (const Algorithm algorithm : algorithms_of(collective, ranks))
              for (const bool in_place : {false, true})
                for (const bool starts : {false, true})
                  if (!testing::Test::HasFatalFailure())
                    expect_right(world, shape, {algorithm, in_place, starts}, right);
            if (input_elems(shape, 2, 0) == input_elems(shape, 2, 1) &&
                output_elems(shape, 2, 0) == output_elems(shape, 2, 1))
              break;  // the root says nothing
          }
}

// Types, operators, counts, roots and forms in turn, so that each is met with each collective.
inline std::vector<std::pair<Shape, Form>> covering_calls(int ranks, int of_each) {
  const auto n = static_cast<std::size_t>(ranks);
  std::vector<std::pair<Shape, Form>> calls;
  std::size_t turn = n;
  for (const Collective collective : kWithBuffers)
    for (const Algorithm algorithm : algorithms_of(collective, ranks))
      for (int i = 0; i < of_each; ++i, ++turn) {
        const std::size_t counts[] = {1, n + 1, 0, 1000, n, 4099, 17, 20'011};
        const DType dtype = all_dtypes()[turn % all_dtypes().size()];
        const auto ops = ops_of(dtype);
        calls.push_back({{collective, counts[turn % 8], dtype, ops[turn / 3 % ops.size()], static_cast<int>(turn % n)},
                         {algorithm, turn % 2 == 0, turn % 3 == 0}});
      }
  return calls;
}

}  // namespace tutti::internal
