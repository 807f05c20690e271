// Operators that carry more than their name, of device memory: premul_sum() gives the bits of host memory; a custom one
// is refused. Runs on a fake device, and wherever there is one on a real one.
#include <gtest/gtest.h>

#include "brief.h"
#include "runtime/device_calls.h"
#include "runtime/premul.h"

namespace tutti::internal {
namespace {

class OperatorsOnDevices : public OnDevices {};
INSTANTIATE_TEST_SUITE_P(Of, OperatorsOnDevices, testing::ValuesIn(kTransports),
                         [](const auto& it) { return it.param; });

// Of every kind of memory, and of messages of one part and of several.
TEST_P(OperatorsOnDevices, PremulSumGivesTheBitsOfHostMemory) {
  for (const int ranks : {1, 3})
    for (const Collective collective : kCombining)
      for (const std::size_t count :
           {std::size_t{1}, std::size_t{1001}, std::size_t{kBrief || ranks == 1 ? 5003u : 2500003u}}) {
        const Shape shape{collective, count, count < 2000 ? DType::bfloat16 : DType::float32, Op::sum, ranks - 1};
        if (count > 10'000 && collective != Collective::all_reduce) continue;
        std::vector<std::vector<std::byte>> right;
        for (int r = 0; r < ranks; ++r) right.push_back(expected_premul(shape, ranks, r));
        Communicator::run_threads(
            ranks,
            [&](Communicator& world) {
              for (const MemoryKind in : {MemoryKind::device, MemoryKind::host})
                for (const MemoryKind out : {MemoryKind::device, MemoryKind::managed, MemoryKind::host})
                  for (const bool in_place : {false, true}) {
                    const Buffers buffers(shape, world.rank(), ranks, in, out, in_place);
                    start_premul(world, shape, buffers.in(), buffers.out()).wait();
                    ASSERT_EQ(buffers.result(), right[static_cast<std::size_t>(world.rank())])
                        << name_of(shape, ranks) << ", rank " << world.rank() << (in_place ? ", in place" : "");
                  }
            },
            GetParam());
      }
}

TEST_P(OperatorsOnDevices, ACustomOneIsRefusedBeforeAnythingIsSent) {
  Communicator::run_threads(
      2,
      [&](Communicator& world) {
        const Operator op = world.make_operator("left", [](const void* left, const void*, void* out, std::size_t n) {
          std::memmove(out, left, n * sizeof(float));
        });
        const DeviceBuffer there(MemoryKind::device, 12);
        std::vector<float> here(3, static_cast<float>(world.rank()));
        for (const bool in : {false, true}) {
          void* const from = in ? static_cast<void*>(there.data()) : here.data();
          void* const to = in ? static_cast<void*>(here.data()) : there.data();
          try {
            world.all_reduce(from, to, 3, DType::float32, op);
            ADD_FAILURE() << "not refused";
          } catch (const Error& error) {
            EXPECT_EQ(error.code, ErrorCode::unsupported);
            EXPECT_NE(std::string(error.what()).find("host memory only"), std::string::npos) << error.what();
          }
        }
        world.all_reduce(std::span(here), op);
        EXPECT_EQ(here, std::vector<float>(3, 0.0f));
      },
      GetParam());
}

}  // namespace
}  // namespace tutti::internal
