#include "doctor/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/shell.h"
#include "transport/verbs/layout.h"

namespace tutti::internal::tools {
namespace {

using testing::HasSubstr;
using testing::Not;

nlohmann::json doctor(const std::string& environment = "") {
  const Result run = shell(environment + " $TUTTI doctor --json");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(std::ranges::count(run.out, '\n'), 1);
  return nlohmann::json::parse(run.out);
}

TEST(Doctor, SaysWhatThisMachineOffers) {
  const Result run = shell("$TUTTI doctor");
  EXPECT_EQ(run.status, 0) << run.err;
  for (const char* words :
       {" core", "memory node", "shared memory: yes\n", "long messages of memory that is not shared: ", "network:\n",
        "RDMA: ", "GPUs: ", "limits:\n",
        "locked memory (ulimit -l): ", "open files (ulimit -n): ", "so ranks of one host use shm"})
    EXPECT_THAT(run.out, HasSubstr(words));
}

TEST(Doctor, JsonIsOneObject) {
  const auto object = doctor();
  EXPECT_GE(object["host"]["cores"], 1);
  EXPECT_GE(object["host"]["processors"], object["host"]["cores"]);
  EXPECT_GE(object["host"]["memory_nodes"], 1);
  EXPECT_EQ(object["shared_memory"], true);
  EXPECT_TRUE(object["reads_private_memory"].is_boolean());
  EXPECT_TRUE(object["network"].is_array());
  EXPECT_TRUE(object["rdma"]["libibverbs"].is_boolean());
  EXPECT_TRUE(object["rdma"]["ports"].is_array());
  EXPECT_TRUE(object["gpus"]["devices"].is_array());
  EXPECT_EQ(object["gpus"]["why_none"].is_null(), !object["gpus"]["devices"].empty());
  EXPECT_TRUE(object["limits"].contains("locked_bytes"));
  EXPECT_EQ(object["limits"]["block_bytes"], verbs::kBlockBytes);
  EXPECT_GT(object["limits"]["open_files"], 0);
  EXPECT_EQ(object["environment"], "");
  EXPECT_EQ(object["one_host"], "shm");
}

TEST(Doctor, FollowsTheEnvironmentAndReportsOneThatIsWrong) {
  EXPECT_EQ(doctor("TUTTI_TRANSPORT=tcp")["between_hosts"], "tcp");
  EXPECT_EQ(doctor("TUTTI_TRANSPORT=tcp")["one_host"], "tcp");
  EXPECT_THAT(std::string(doctor("TUTTI_TRANSPORT=pigeon")["environment"]), HasSubstr("TUTTI_TRANSPORT is 'pigeon'"));
  EXPECT_THAT(std::string(doctor("TUTTI_VERBS_DEVICE=mlx5_0:x")["environment"]), HasSubstr("not \"mlx5_0:x\""));
  EXPECT_THAT(shell("TUTTI_RANK=0 TUTTI_SIZE=many $TUTTI doctor").out, HasSubstr("environment: TUTTI_SIZE is 'many'"));
}

// --- machines that are made up ---------------------------------------------------------------------------------------

Findings fake() {
  Findings found;
  found.host = "node7";
  found.cores = 32;
  found.processors = 64;
  found.memory_nodes = 2;
  found.addresses = {{"eth0", "10.0.0.7", true}, {"lo", "127.0.0.1", false}};
  found.has_libibverbs = true;
  const verbs::Port up{.device = "mlx5_1",
                       .number = 1,
                       .is_active = true,
                       .state = "PORT_ACTIVE",
                       .mtu_bytes = 4096,
                       .gbits = 100,
                       .node = 1,
                       .gids = {{0, "fe80::1", false, true, false}, {3, "::ffff:10.0.0.7", true, false, true}}};
  verbs::Port down = up;
  down.device = "mlx5_0";
  down.is_active = false;
  down.state = "PORT_DOWN";
  found.ports = {down, up};
  found.choice = verbs::choose(found.ports, {}, -1);
  return found;
}

TEST(Doctor, SaysWhichPortItWouldUseAndWhyNotTheRest) {
  const Findings found = fake();
  const std::string text = to_text(found);
  EXPECT_THAT(text, HasSubstr("node7: 32 cores (64 hardware threads), 2 memory nodes\n"));
  EXPECT_THAT(text, HasSubstr("  * mlx5_1 port 1: used, with GID 3 (::ffff:10.0.0.7)\n"
                              "      Ethernet, PORT_ACTIVE, MTU 4096, 100 Gbit/s, memory node 1\n"));
  EXPECT_THAT(text, HasSubstr("    mlx5_0 port 1: its link is not up (PORT_DOWN)\n"));
  EXPECT_THAT(text, HasSubstr("GID 0   fe80::1                                 RoCE v1, this link only\n"));
  EXPECT_THAT(text, HasSubstr("GID 3   ::ffff:10.0.0.7                         RoCE v2, IPv4\n"));
  EXPECT_THAT(text, HasSubstr("so ranks of one host use shm, ranks of several verbs"));
  const auto object = nlohmann::json::parse(to_json(found));
  EXPECT_EQ(object["between_hosts"], "verbs");
  EXPECT_EQ(object["rdma"]["gid"], 3);
  const auto& ports = object["rdma"]["ports"];
  EXPECT_EQ(ports[0]["used"], false);
  EXPECT_EQ(ports[0]["why"], "its link is not up (PORT_DOWN)");
  EXPECT_EQ(ports[1]["used"], true);
  EXPECT_EQ(ports[1]["device"], "mlx5_1");
  EXPECT_EQ(ports[1]["gids"][1]["kind"], "roce_v2");
  EXPECT_EQ(object["limits"]["locked_bytes"], nullptr);
}

TEST(Doctor, SaysWhyThereIsNoRdma) {
  Findings found = fake();
  found.ports = {found.ports[0]};
  found.choice = verbs::choose(found.ports, {}, -1);
  EXPECT_THAT(to_text(found), HasSubstr("RDMA: there is a device, but no port to use\n"));
  found.ports.clear();
  found.choice = {};
  EXPECT_THAT(to_text(found), HasSubstr("RDMA: no device\n"));
  EXPECT_THAT(to_text(found), HasSubstr("ranks of several tcp\n"));
  EXPECT_EQ(nlohmann::json::parse(to_json(found))["rdma"]["gid"], nullptr);
  found.has_libibverbs = false;
  EXPECT_THAT(to_text(found), HasSubstr("RDMA: no, this tutti was built without libibverbs"));
}

TEST(Doctor, SaysForHowManyPeersLockedMemoryIsEnough) {
  Findings found = fake();
  EXPECT_THAT(to_text(found), HasSubstr("locked memory (ulimit -l): no limit"));
  found.locked_bytes = 8 << 20;
  EXPECT_THAT(to_text(found),
              HasSubstr("8192 KiB; RDMA locks 520 KiB a peer, and what is registered: at most 15 peers"));
  EXPECT_THAT(to_text(found), HasSubstr("ulimit -l unlimited"));
  found.locked_bytes = verbs::kBlockBytes - 1;
  EXPECT_THAT(to_text(found), HasSubstr("too little for one peer"));
}

}  // namespace
}  // namespace tutti::internal::tools
