// Every collective through the public API against the plain statement of it (shapes.h): by every algorithm, for every
// type and operator, in place and not, blocking and started, from 1 to 8 ranks, over every transport that needs no
// second host. The check takes a covering part; the whole product, ExhaustiveConformance, is run by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "brief.h"
#include "collectives/catalogue.h"
#include "runtime/ranks.h"
#include "runtime/shapes.h"

namespace tutti::internal {
namespace {

// The call as users write it.
Work started(Communicator& world, const Shape& it, const void* in, void* out, const CallOptions& how) {
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
    case Collective::barrier: break;
  }
  return world.start_barrier(how);
}
void blocking(Communicator& world, const Shape& it, const void* in, void* out, const CallOptions& how) {
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
    case Collective::barrier: return world.barrier(how);
  }
}

struct Form {
  Algorithm algorithm;
  bool in_place, starts;
};

constexpr std::size_t kGuard = 64;  // bytes around what the call may touch, and what may not be touched at all

// A rank's input and output in one piece of memory, all of which but the output must be as it was.
void expect_right(Communicator& world, const Shape& shape, const Form& form, const std::vector<std::byte>& right) {
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
  void* const in = mine.empty() ? nullptr : &memory[in_at];
  void* const out = right.empty() ? nullptr : &memory[out_at];
  const CallOptions how{.algorithm = form.algorithm};
  form.starts ? started(world, shape, in, out, how).wait() : blocking(world, shape, in, out, how);
  ASSERT_TRUE(memory == want) << name_of(shape, world.size()) << ", " << to_string(shape.op) << ", root " << shape.root
                              << ", " << to_string(form.algorithm) << (form.in_place ? ", in place" : "")
                              << (form.starts ? ", started" : "") << ", rank " << world.rank();
}

std::vector<Algorithm> algorithms_of(Collective collective, int ranks) {
  std::vector<Algorithm> all{Algorithm::automatic};
  for (const AlgorithmEntry& entry : catalogue())
    if (entry.collective == collective && (entry.canonical || ranks <= 2)) all.push_back(entry.algorithm);
  return all;
}

class Conformance : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Of, Conformance, testing::ValuesIn(kTransports), [](const auto& it) { return it.param; });

// Types, operators, counts, roots and forms in turn, so that each is met with each collective and number of ranks.
TEST_P(Conformance, EveryCollectiveGivesWhatItSays) {
  for (const int ranks : kBrief ? std::vector{1, 2, 3, 5} : std::vector{1, 2, 3, 4, 5, 6, 7, 8}) {
    const auto n = static_cast<std::size_t>(ranks);
    std::vector<std::pair<Shape, Form>> calls;
    std::size_t turn = n;
    for (const Collective collective : kWithBuffers)
      for (const Algorithm algorithm : algorithms_of(collective, ranks))
        for (int i = 0; i < (kBrief ? 3 : 12); ++i, ++turn) {
          const std::size_t counts[] = {1, n + 1, 0, 1000, n, 4099, 17};
          calls.push_back({{collective, counts[turn % 7], all_dtypes()[turn % all_dtypes().size()],
                            all_ops()[turn / 3 % all_ops().size()], static_cast<int>(turn % n)},
                           {algorithm, turn % 2 == 0, turn % 3 == 0}});
        }
    std::vector<std::vector<std::vector<std::byte>>> right;
    for (const auto& [shape, form] : calls) right.push_back(expected(shape, ranks));
    Communicator::run_threads(
        ranks,
        [&](Communicator& world) {
          for (std::size_t i = 0; i < calls.size() && !testing::Test::HasFatalFailure(); ++i)
            expect_right(world, calls[i].first, calls[i].second, right[i][static_cast<std::size_t>(world.rank())]);
        },
        GetParam());
  }
}

class ExhaustiveConformance : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(ExhaustiveOf, ExhaustiveConformance, testing::ValuesIn(kTransports),
                         [](const auto& it) { return it.param; });

TEST_P(ExhaustiveConformance, EveryCollectiveTypeOperatorCountRootAndFormGivesWhatItSays) {
  for (int ranks = 1; ranks <= 8; ++ranks)
    Communicator::run_threads(
        ranks,
        [&](Communicator& world) {
          for (const Collective collective : kWithBuffers)
            for (const DType dtype : all_dtypes())
              for (const Op op : all_ops())
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
        },
        GetParam());
}

}  // namespace
}  // namespace tutti::internal
