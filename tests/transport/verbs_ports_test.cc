// Which port is used, of made-up lists of ports, and what is said of the others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "transport/verbs/ports.h"
#include "tutti/error.h"

namespace tutti::internal::verbs {
namespace {

using testing::HasSubstr;

const Gid kLinkLocal1{0, "fe80::1", false, true, false}, kLinkLocal2{1, "fe80::1", true, true, false};
const Gid kIpv4v1{2, "::ffff:10.0.0.1", false, false, true}, kIpv4v2{3, "::ffff:10.0.0.1", true, false, true};
const Gid kIpv6v2{5, "2001:db8::1", true, false, false};

Port port(const std::string& device, double gbits = 100, int node = -1) {
  return {.device = device,
          .is_active = true,
          .state = "PORT_ACTIVE",
          .mtu_bytes = 4096,
          .gbits = gbits,
          .node = node,
          .gids = {kLinkLocal1, kLinkLocal2, kIpv4v1, kIpv4v2}};
}

// The device that is chosen, or "" for none; each port has got a word.
std::string chosen(const std::vector<Port>& ports, const PortRequest& request = {}, int node = -1) {
  const Choice choice = choose(ports, request, node);
  EXPECT_EQ(choice.words.size(), ports.size());
  for (std::size_t i = 0; i < ports.size(); ++i) {
    EXPECT_NE(choice.words[i], "") << ports[i].device;
    EXPECT_EQ(choice.words[i].starts_with("used"), choice.chosen == i) << choice.words[i];
  }
  return choice.chosen ? ports[*choice.chosen].device + ":" + std::to_string(ports[*choice.chosen].number) : "";
}

std::string word(const Port& port, const PortRequest& request = {}) { return choose({port}, request, -1).words.at(0); }

TEST(VerbsPorts, WithoutAnyNoneIsChosen) {
  EXPECT_EQ(chosen({}), "");
  EXPECT_EQ(why_none({}, {}, {}),
            "this host has no RDMA device: use transport tcp, or try `rdma link` and `tutti doctor`");
  EXPECT_THAT(why_none({}, {}, {.device = "mlx5_0"}), HasSubstr("no RDMA device, so no mlx5_0"));
}

TEST(VerbsPorts, TheOnlyOneIsChosen) {
  EXPECT_EQ(chosen({port("rxe0")}), "rxe0:1");
  EXPECT_EQ(choose({port("rxe0")}, {}, -1).gid, 3);
  EXPECT_EQ(word(port("rxe0")), "used, with GID 3 (::ffff:10.0.0.1)");
}

TEST(VerbsPorts, APortWhoseLinkIsDownIsNot) {
  Port down = port("mlx5_0");
  down.is_active = false;
  down.state = "PORT_DOWN";
  EXPECT_EQ(chosen({down}), "");
  EXPECT_EQ(word(down), "its link is not up (PORT_DOWN)");
  EXPECT_EQ(chosen({down, port("mlx5_1", 10)}), "mlx5_1:1") << "however fast it would be";
}

TEST(VerbsPorts, APortThatCannotBeAskedIsNot) {
  Port unknown{.device = "mlx5_0", .error_text = "it cannot be opened (Permission denied)"};
  EXPECT_EQ(chosen({unknown}), "");
  EXPECT_EQ(word(unknown), unknown.error_text);
}

TEST(VerbsPorts, APortWithoutAGidIsNot) {
  Port none = port("rxe0");
  none.gids.clear();
  EXPECT_EQ(chosen({none}), "");
  EXPECT_THAT(word(none), HasSubstr("has no GID: give its network interface an address"));
}

TEST(VerbsPorts, RoceOfVersion1IsUsedOnlyWhereItIsAskedFor) {
  Port old = port("mlx4_0");
  old.gids = {kLinkLocal1, kIpv4v1};
  EXPECT_EQ(chosen({old}), "");
  EXPECT_THAT(word(old), HasSubstr("no RoCE v2 GID"));
  EXPECT_EQ(chosen({old}, {.gid = 2}), "mlx4_0:1");
  EXPECT_EQ(choose({old}, {.gid = 2}, -1).gid, 2);
}

// The kernel makes a device's first GIDs of its MAC, whether or not the interface has that address.
TEST(VerbsPorts, AGidThatIsNoAddressIsNotUnlessAskedFor) {
  Port bare = port("rxe0");
  bare.gids = {kLinkLocal2};
  bare.gids[0].is_an_address = false;
  EXPECT_EQ(chosen({bare}), "");
  EXPECT_THAT(word(bare), HasSubstr("no RoCE v2 GID that is an address of this host: give its network interface"));
  EXPECT_EQ(chosen({bare}, {.gid = 1}), "rxe0:1");
  bare.is_ethernet = false;
  EXPECT_EQ(chosen({bare}), "rxe0:1");
}

// In a container that shares its host's devices, but not its interfaces.
TEST(VerbsPorts, AnAddressOfAnotherNetworkNamespaceIsUsedWhereThereIsNoOwn) {
  Port shared = port("mlx5_0");
  for (Gid& gid : shared.gids) gid.is_an_address = false;
  EXPECT_EQ(choose({shared}, {}, -1).gid, kIpv4v2.index);
  shared.gids.push_back(kIpv6v2);
  EXPECT_EQ(choose({shared}, {}, -1).gid, kIpv6v2.index);
}

TEST(VerbsPorts, OnInfiniBandTheFirstGidIs) {
  Port infiniband = port("mlx5_0");
  infiniband.is_ethernet = false;
  infiniband.gids = {{0, "fe80::506b:4b03:1", false, true, false}, {1, "fe80::506b:4b03:2", false, true, false}};
  EXPECT_EQ(chosen({infiniband}), "mlx5_0:1");
  EXPECT_EQ(choose({infiniband}, {}, -1).gid, 0);
}

TEST(VerbsPorts, Ipv4ComesBeforeIpv6BeforeTheLinkAlone) {
  Port one = port("rxe0");
  one.gids = {kLinkLocal1, kLinkLocal2};
  EXPECT_EQ(choose({one}, {}, -1).gid, 1);
  one.gids = {kLinkLocal2, kIpv6v2};
  EXPECT_EQ(choose({one}, {}, -1).gid, 5);
  one.gids = {kIpv6v2, kLinkLocal2, kIpv4v1, kIpv4v2};
  EXPECT_EQ(choose({one}, {}, -1).gid, 3);
}

TEST(VerbsPorts, ANearOneComesBeforeAFasterOne) {
  const std::vector<Port> ports = {port("far", 400, 0), port("near", 100, 1), port("slow", 10, 1)};
  EXPECT_EQ(chosen(ports, {}, 1), "near:1");
  const Choice choice = choose(ports, {}, 1);
  EXPECT_EQ(choice.words[0], "another is nearer");
  EXPECT_EQ(choice.words[2], "another is as near, and as fast or faster");
}

TEST(VerbsPorts, AFasterOneComesBeforeASlowerOneThenAsTheyWereFound) {
  EXPECT_EQ(chosen({port("slow", 10), port("fast", 100), port("twin", 100)}), "fast:1");
  EXPECT_EQ(chosen({port("slow", 10, 0), port("fast", 100, 0)}, {}, 1), "fast:1") << "none is near";
  EXPECT_EQ(chosen({port("first"), port("second")}), "first:1");
}

// A virtual device has no node; nor has a rank that is not bound. That makes neither of them near to the other.
TEST(VerbsPorts, NoNodeIsNearToNoNode) {
  EXPECT_EQ(chosen({port("rxe0", 2.5, -1), port("mlx5_0", 100, 0)}, {}, -1), "mlx5_0:1");
  EXPECT_EQ(choose({port("rxe0", 2.5, -1), port("mlx5_0", 100, 0)}, {}, -1).words[0],
            "another is as near, and as fast or faster");
}

TEST(VerbsPorts, AWishIsFollowed) {
  std::vector<Port> ports = {port("mlx5_0", 400), port("mlx5_1", 100), port("mlx5_1", 100)};
  ports[2].number = 2;
  EXPECT_EQ(chosen(ports, {.device = "mlx5_1"}), "mlx5_1:1");
  EXPECT_EQ(chosen(ports, {.device = "mlx5_1", .port = 2}), "mlx5_1:2");
  EXPECT_EQ(chosen(ports, {.gid = 1}), "mlx5_0:1");
  EXPECT_EQ(choose(ports, {.gid = 1}, -1).gid, 1);
  const Choice choice = choose(ports, {.device = "mlx5_1", .port = 2}, -1);
  EXPECT_EQ(choice.words[0], "TUTTI_VERBS_DEVICE asks for mlx5_1");
  EXPECT_EQ(choice.words[1], "TUTTI_VERBS_DEVICE asks for port 2");
}

TEST(VerbsPorts, AWishForWhatIsNotThereIsRefusedInWords) {
  const std::vector<Port> ports = {port("mlx5_0"), port("mlx5_1")};
  EXPECT_EQ(chosen(ports, {.device = "mlx5_2"}), "");
  EXPECT_EQ(chosen(ports, {.device = "mlx5_0", .port = 2}), "");
  EXPECT_EQ(chosen(ports, {.gid = 9}), "");
  const PortRequest request{.device = "mlx5_0", .gid = 9};
  EXPECT_EQ(why_none(ports, choose(ports, request, -1), request),
            "this host has no RDMA port to use: mlx5_0 port 1: has no GID 9; mlx5_1 port 1: TUTTI_VERBS_DEVICE asks "
            "for mlx5_0");
}

TEST(VerbsPorts, AWishIsADeviceOrADeviceAndAPort) {
  const PortRequest any = PortRequest::parse("", -1);
  EXPECT_EQ(any.device, "");
  EXPECT_EQ(any.port, -1);
  EXPECT_EQ(any.gid, -1);
  const PortRequest device = PortRequest::parse("mlx5_0", 3);
  EXPECT_EQ(device.device, "mlx5_0");
  EXPECT_EQ(device.port, -1);
  EXPECT_EQ(device.gid, 3);
  EXPECT_EQ(PortRequest::parse("mlx5_0:2", -1).device, "mlx5_0");
  EXPECT_EQ(PortRequest::parse("mlx5_0:2", -1).port, 2);
  for (const char* wrong :
       {"mlx5_0:", "mlx5_0:0", "mlx5_0:-1", "mlx5_0:x", "mlx5_0:1x", "mlx5_0:1:2", "mlx5_0: 1", "mlx5_0:99999999999"}) {
    try {
      PortRequest::parse(wrong, -1);
      ADD_FAILURE() << wrong;
    } catch (const Error& error) {
      EXPECT_EQ(error.code, ErrorCode::invalid_argument);
      EXPECT_THAT(error.what(), HasSubstr(std::string("not \"") + wrong + "\""));
    }
  }
}

}  // namespace
}  // namespace tutti::internal::verbs
