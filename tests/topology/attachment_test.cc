// Where PCI devices hang, on a machine that is made up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "topology/machine.h"

namespace tutti::internal::topology {
namespace {

using testing::ElementsAre;

std::string text_of(const std::string& name) {
  std::ifstream file(RECORDED + name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

Attachment attachment_of(const std::string& pci) {
  return Machine::recorded(text_of("gpus.xml")).attachment_of(pci).value();
}

TEST(AttachmentOf, IsTheSwitchThatAGpuSharesWithAnAdapter) {
  const Attachment gpu = attachment_of("0000:07:00.0");
  EXPECT_EQ(gpu.node, 0);
  EXPECT_EQ(gpu.package, 0);
  EXPECT_NEAR(gpu.link_gbs, 63.0, 0.1);
  EXPECT_THAT(gpu.nearest, ElementsAre("ibp8s0", "mlx5_0")) << "not eth0, at the same root complex";
  EXPECT_EQ(gpu.proximity, Proximity::pci_switch);
}

TEST(AttachmentOf, ElseTheRootComplexThePackageOrTheMachine) {
  const Attachment root = attachment_of("0000:11:00.0");
  EXPECT_THAT(root.nearest, ElementsAre("eth0", "ibp8s0", "mlx5_0"));
  EXPECT_EQ(root.proximity, Proximity::root_complex);
  const Attachment part = attachment_of("0000:87:00.0");
  EXPECT_EQ(part.node, 1);
  EXPECT_EQ(part.package, 1);
  EXPECT_THAT(part.nearest, ElementsAre("mlx5_1"));
  EXPECT_EQ(part.proximity, Proximity::part);
  const Attachment nowhere = attachment_of("0000:f1:00.0");
  EXPECT_EQ(nowhere.node, std::nullopt);
  EXPECT_EQ(nowhere.package, std::nullopt);
  EXPECT_THAT(nowhere.nearest, ElementsAre("eth0", "ibp8s0", "mlx5_0", "mlx5_1")) << "and not bond0, on no bus";
  EXPECT_EQ(nowhere.proximity, Proximity::machine);
}

TEST(AttachmentOf, AnAdapterIsNearestToItself) {
  EXPECT_THAT(attachment_of("0000:10:00.0").nearest, ElementsAre("eth0"));
  EXPECT_EQ(attachment_of("0000:10:00.0").proximity, Proximity::pci_switch);
}

TEST(AttachmentOf, WhatTheTopologyDoesNotHaveIsNothing) {
  const Machine machine = Machine::recorded(text_of("gpus.xml"));
  for (const char* pci : {"0000:07:00.1", "0001:07:00.0", "", "GPU 0"}) EXPECT_FALSE(machine.attachment_of(pci)) << pci;
  EXPECT_FALSE(Machine::recorded(text_of("two_packages.xml")).attachment_of("0000:07:00.0"));
  EXPECT_FALSE(Machine::synthetic("core:2 pu:1").attachment_of("0000:07:00.0"));
}

TEST(AttachmentOf, WithoutAdaptersNoneIsNear) {
  const std::string all = text_of("gpus.xml");
  std::string none;
  std::istringstream lines(all);
  for (std::string line; std::getline(lines, line);)
    if (line.find("OSDev") == std::string::npos) none += line + "\n";
  const auto gpu = Machine::recorded(none).attachment_of("0000:07:00.0");
  ASSERT_TRUE(gpu);
  EXPECT_TRUE(gpu->nearest.empty());
  EXPECT_EQ(gpu->package, 0);
}

TEST(AttachmentOf, DevicesMakeNoDifferenceToRanks) {
  const Machine machine = Machine::recorded(text_of("gpus.xml"));
  EXPECT_EQ(machine.place(machine.processors(), 2), (std::vector<Processors>{{0}, {1}}));
  EXPECT_EQ(machine.node_of({2, 3}), 1);
}

TEST(Machine, HereWithDevicesHasTheProcessorsOfHere) {
  EXPECT_EQ(Machine::here_with_devices().processors(), Machine::here().processors());
}

}  // namespace
}  // namespace tutti::internal::topology
