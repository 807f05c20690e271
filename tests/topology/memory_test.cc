// That the system does as it is told, as far as a machine with one node can show it.
#include <gtest/gtest.h>
#include <hwloc.h>

#include "topology/machine.h"
#include "transport/shm/segment.h"

namespace tutti::internal::topology {
namespace {

class Memory : public testing::Test {
 protected:
  void SetUp() override {
    hwloc_topology_init(&topology_);
    ASSERT_EQ(hwloc_topology_load(topology_), 0);
  }
  void TearDown() override { hwloc_topology_destroy(topology_); }

  bool can_bind() const {
    const auto* support = hwloc_topology_get_support(topology_)->membind;
    return support->set_area_membind && support->get_area_membind;
  }
  // The policy of the page at `at`, and on which node.
  std::pair<hwloc_membind_policy_t, int> policy_at(void* at) const {
    const hwloc_bitmap_t nodes = hwloc_bitmap_alloc();
    hwloc_membind_policy_t policy = HWLOC_MEMBIND_DEFAULT;
    EXPECT_EQ(hwloc_get_area_membind(topology_, at, 4096, nodes, &policy, HWLOC_MEMBIND_BYNODESET), 0);
    const int node = hwloc_bitmap_first(nodes);
    hwloc_bitmap_free(nodes);
    return {policy, node};
  }

  hwloc_topology_t topology_ = nullptr;
};

TEST_F(Memory, OfASegmentIsKeptOnANodeForAllWhoMapItAlsoWhatIsMappedLater) {
  const auto own = shm::Segment::create();
  const Machine machine = Machine::here();
  const int node = hwloc_bitmap_first(hwloc_topology_get_allowed_nodeset(topology_));
  bool binds = can_bind();
  own->keep_near([&](std::byte* at, std::size_t bytes) { binds = binds && machine.keep_on(node, at, bytes); });
  if (!binds) GTEST_SKIP() << "this system does not let memory be bound";
  const auto seen = shm::Segment::map(::dup(own->fd()));
  const std::uint64_t lane = own->add_lane(0, 1, 1 << 20, 4096), symmetric = own->allocate(4096);
  seen->claim(lane + 4096, 4096);  // as a peer does for a ring
  for (const auto& segment : {own, seen})
    for (const std::uint64_t at : {lane, lane + 4096, symmetric})
      EXPECT_EQ(policy_at(segment->at(at)), std::pair(HWLOC_MEMBIND_BIND, node));
}

TEST_F(Memory, OnAMachineWithOneNodeIsLeftAlone) {
  if (has_several_nodes()) GTEST_SKIP() << "this machine has several";
  const auto own = shm::Segment::create();
  own->keep_near(keep_near_this_thread);
  EXPECT_NE(policy_at(own->at(0)).first, HWLOC_MEMBIND_BIND);
}

}  // namespace
}  // namespace tutti::internal::topology
