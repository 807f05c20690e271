#include "control/env.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <utility>

#include "tutti/error.h"

namespace tutti::internal {
namespace {

using Variables = std::map<std::string, std::string>;
using std::chrono::milliseconds;

Settings read(const Variables& variables) {
  return settings_from([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

// The message of the error that these variables give.
std::string error_text(const Variables& variables) {
  try {
    read(variables);
  } catch (const Error& error) {
    EXPECT_EQ(error.code, ErrorCode::invalid_argument);
    return error.what();
  }
  return "";
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

Variables with(Variables base, const Variables& more) {
  for (const auto& [name, value] : more) base[name] = value;
  return base;
}

const Variables kTutti{{"TUTTI_RANK", "1"}, {"TUTTI_SIZE", "3"}, {"TUTTI_MASTER", ":29500"}};
const Variables kTorch{{"RANK", "2"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "node0"}, {"MASTER_PORT", "29500"}};

void expect_who(const Settings& s, int rank, int size, const std::string& address, int port) {
  EXPECT_EQ(s.rank, rank);
  EXPECT_EQ(s.size, size);
  EXPECT_EQ(s.master_address, address);
  EXPECT_EQ(s.master_port, port);
}

TEST(Env, NothingSetIsAJobOfOne) {
  const Settings s = read({});
  expect_who(s, 0, 1, "", 0);
  EXPECT_EQ(s.timeout, milliseconds(600'000));
  EXPECT_EQ(s.transport, "auto");
}

TEST(Env, TheAttemptIsWhatTheLauncherSays) {
  EXPECT_EQ(read(kTutti).attempt, 0);
  const Variables again = with(kTutti, {{"TUTTI_ATTEMPT", "2"}});
  EXPECT_EQ(read(again).attempt, 2);
}

TEST(Env, EveryLauncherIsUnderstood) {
  expect_who(read(kTutti), 1, 3, "", 29500);
  expect_who(read(kTorch), 2, 4, "node0", 29500);
  expect_who(read(with(kTorch, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}})), 2, 4, "node0", 29501);
  expect_who(read(with(kTorch, {{"TORCHELASTIC_USE_AGENT_STORE", "False"}})), 2, 4, "node0", 29500);

  const Variables open_mpi{{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"PMIX_NAMESPACE", "123"}};
  const Settings a = read(open_mpi);
  expect_who(a, 1, 2, "", a.master_port);
  EXPECT_NE(a.master_port, 0);
  EXPECT_NE(a.master_port, read(with(open_mpi, {{"PMIX_NAMESPACE", "124"}})).master_port);

  const Settings b = read({{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"MPI_LOCALNRANKS", "4"}});
  expect_who(b, 3, 4, "", b.master_port);
  EXPECT_NE(b.master_port, 0);
}

TEST(Env, AMasterAddressMayStandInBrackets) {
  expect_who(read(with(kTorch, {{"MASTER_ADDR", "[::1]"}})), 2, 4, "::1", 29500);
}

TEST(Env, SlurmMeetsOnTheFirstHostOfTheStep) {
  const Variables slurm{
      {"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "8"}, {"SLURM_JOB_ID", "4711"}, {"SLURM_LAUNCH_NODE_IPADDR", "10.0.0.1"}};
  const Settings s = read(slurm);
  expect_who(s, 5, 8, "10.0.0.1", s.master_port);
  EXPECT_GE(s.master_port, 20000);
  EXPECT_LT(s.master_port, 30000);
  EXPECT_NE(s.master_port, read(with(slurm, {{"SLURM_JOB_ID", "4712"}})).master_port);
  EXPECT_EQ(read(with(slurm, {{"SLURM_JOB_NODELIST", "n[07-09]"}})).master_address, "n07");
  EXPECT_EQ(read(with(slurm, {{"SLURM_NNODES", "1"}})).master_address, "");
  EXPECT_TRUE(says(error_text({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}), "SLURM_JOB_ID"));
  expect_who(read({{"SLURM_NTASKS", "8"}, {"SLURM_JOB_ID", "1"}}), 0, 1, "", 0);  // a shell in an allocation
}

TEST(Env, TheFirstHostOfASlurmList) {
  EXPECT_EQ(first_host("node[007-009,12],login"), "node007");
  EXPECT_EQ(first_host("a,b"), "a");
  EXPECT_EQ(first_host("rack[1-2]node[3,4]x"), "rack1node3x");
  EXPECT_EQ(first_host("single"), "single");
  EXPECT_EQ(first_host(""), "");
  EXPECT_EQ(first_host("broken[12"), "broken12");
}

TEST(Env, OurVariablesComeBeforeALaunchers) {
  expect_who(read(with(kTorch, kTutti)), 1, 3, "", 29500);
  expect_who(read(with(kTorch, {{"TUTTI_MASTER", "other:1"}})), 2, 4, "other", 1);
  expect_who(read({{"OMPI_COMM_WORLD_RANK", "1"},
                   {"OMPI_COMM_WORLD_SIZE", "4"},
                   {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                   {"TUTTI_MASTER", "n1:7"}}),
             1, 4, "n1", 7);
}

TEST(Env, WhatIsMissingIsNamed) {
  EXPECT_TRUE(says(error_text({{"TUTTI_RANK", "0"}}), "TUTTI_RANK is set but TUTTI_SIZE is not"));
  EXPECT_TRUE(says(error_text({{"WORLD_SIZE", "2"}}), "WORLD_SIZE is set but RANK is not"));
  EXPECT_TRUE(says(error_text({{"TUTTI_RANK", "0"}, {"TUTTI_SIZE", "2"}}), "TUTTI_MASTER"));
  EXPECT_TRUE(says(error_text({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "1"}}), "MASTER_ADDR"));
  EXPECT_TRUE(says(error_text({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}}), "MASTER_PORT"));
  EXPECT_TRUE(says(
      error_text({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}),
      "set TUTTI_MASTER=host:port"));
}

TEST(Env, EveryBadValueIsAnErrorThatNamesItsVariable) {
  const std::map<std::string, std::vector<std::string>> bad{
      {"TUTTI_RANK", {"x", "-1", "1x", "1.5", "99999999999"}},
      {"TUTTI_ATTEMPT", {"x", "-1", "99999999999"}},
      {"TUTTI_SIZE", {"0", "-3", "x", "1000000"}},
      {"TUTTI_MASTER", {"host", "host:", "host:0", "host:65536", "host:x", "::1:5", "a:b:1"}},
      {"TUTTI_TIMEOUT", {"0", "-1", "soon", "nan", "inf", "1e99", "5s", "0.0001"}},
      {"TUTTI_CONNECT_TIMEOUT", {"0", "x"}},
      {"TUTTI_JOIN_TIMEOUT", {"0", "x"}},
      {"TUTTI_PORTS", {"0", "5-4", "1-", "-1", "a-b", "1-70000", "1-2-3"}},
      {"TUTTI_TRANSPORT", {"udp", "SHM"}},
      {"TUTTI_PROGRESS", {"1", "THREAD", "both"}},
      {"TUTTI_DUMP_SIGNAL", {"usr1", "KILL", "SIGSEGV", "10"}},
      {"TUTTI_DEBUG", {"1", "WARN", "all"}}};
  for (const auto& [name, values] : bad)
    for (const std::string& value : values) {
      const std::string message = error_text(with(kTutti, {{name, value}}));
      EXPECT_TRUE(says(message, name + " is '" + value + "' but should be "))
          << name << "=" << value << ": " << message;
    }
  EXPECT_TRUE(says(error_text(with(kTorch, {{"MASTER_PORT", "x"}})), "MASTER_PORT is 'x'"));
  EXPECT_TRUE(says(error_text(with(kTorch, {{"MASTER_PORT", "65535"}, {"TORCHELASTIC_USE_AGENT_STORE", "True"}})),
                   "MASTER_PORT is '65535'"));
}

TEST(Env, GoodValuesAreTaken) {
  const Settings s = read(with(kTutti, {{"TUTTI_MASTER", "[::1]:5"},
                                        {"TUTTI_SECRET", "abc"},
                                        {"TUTTI_TIMEOUT", "1.5"},
                                        {"TUTTI_CONNECT_TIMEOUT", "0.25"},
                                        {"TUTTI_JOIN_TIMEOUT", "7"},
                                        {"TUTTI_INTERFACE", "eth0"},
                                        {"TUTTI_PORTS", "29600-29699"},
                                        {"TUTTI_TABLE", "my.table"},
                                        {"TUTTI_DEBUG", "info"},
                                        {"TUTTI_TRANSPORT", "tcp"}}));
  EXPECT_EQ(s.master_address, "::1");
  EXPECT_EQ(s.master_port, 5);
  EXPECT_EQ(s.secret, "abc");
  EXPECT_EQ(s.timeout, milliseconds(1500));
  EXPECT_EQ(s.connect_timeout, milliseconds(250));
  EXPECT_EQ(s.join_timeout, milliseconds(7000));
  EXPECT_EQ(s.interface, "eth0");
  EXPECT_EQ(s.port_first, 29600);
  EXPECT_EQ(s.port_last, 29699);
  EXPECT_EQ(s.transport, "tcp");
  EXPECT_EQ(s.table, "my.table");
  EXPECT_EQ(s.log_level, LogLevel::info);
  EXPECT_EQ(read(with(kTutti, {{"TUTTI_DEBUG", "trace"}})).log_level, LogLevel::trace);
  EXPECT_EQ(read(kTutti).progress, Progress::caller);
  EXPECT_EQ(read(with(kTutti, {{"TUTTI_PROGRESS", "caller"}})).progress, Progress::caller);
  EXPECT_EQ(read(with(kTutti, {{"TUTTI_PROGRESS", "thread"}})).progress, Progress::thread);
  EXPECT_EQ(read(kTutti).dump_signal, 0);
  EXPECT_EQ(read(with(kTutti, {{"TUTTI_DUMP_SIGNAL", "USR1"}})).dump_signal, SIGUSR1);
  EXPECT_EQ(read(with(kTutti, {{"TUTTI_DUMP_SIGNAL", "SIGQUIT"}})).dump_signal, SIGQUIT);
  EXPECT_EQ(read(kTutti).dump_dir, "");
  EXPECT_EQ(read(with(kTutti, {{"TUTTI_DUMP_DIR", "/tmp"}})).dump_dir, "/tmp");
  EXPECT_EQ(read(kTutti).log_level, LogLevel::warn);
  EXPECT_EQ(read(kTutti).table, "");
  EXPECT_EQ(read(with(kTutti, {{"TUTTI_PORTS", "7"}})).port_last, 7);
}

TEST(Env, AHeartbeatTimeoutThatNoRankCouldKeepCountsAsTheShortestOne) {
  using std::chrono::milliseconds;
  Settings settings;
  for (const auto& [asked, counts] :
       {std::pair(1, 100), std::pair(99, 100), std::pair(100, 100), std::pair(250, 250)}) {
    settings.heartbeat_timeout = milliseconds(asked);
    EXPECT_EQ(within_clocks(settings).heartbeat_timeout, milliseconds(counts));
  }
}

TEST(Env, WhatTunesIsReadWithoutALauncher) {
  const Variables broken{
      {"OMPI_COMM_WORLD_RANK", "x"}, {"TUTTI_SIZE", "y"}, {"TUTTI_MASTER", "z"}, {"HOME", "/"}, {"TUTTI_ATTEMPT", "3"}};
  const Variables variables = with(broken, {{"TUTTI_TIMEOUT", "7"}, {"TUTTI_TRANSPORT", "tcp"}});
  const Settings settings = tuning_from([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
  EXPECT_EQ(settings.timeout, milliseconds(7000));
  EXPECT_EQ(settings.transport, "tcp");
  EXPECT_EQ(settings.attempt, 0);
  EXPECT_EQ(settings.size, -1);
  EXPECT_EQ(settings.master_port, 0);
  EXPECT_EQ(settings.secret, "");
}

TEST(Env, AnEmptyVariableIsNotSet) { expect_who(read({{"RANK", ""}, {"WORLD_SIZE", ""}}), 0, 1, "", 0); }

class SecretFile : public testing::Test {
 protected:
  SecretFile() {
    char name[] = "/tmp/tutti_secret_test_XXXXXX";
    directory_ = mkdtemp(name);
    mkdir((directory_ + "/.config").c_str(), 0700);
    mkdir((directory_ + "/.config/tutti").c_str(), 0700);
    path_ = directory_ + "/.config/tutti/secret";
  }
  ~SecretFile() override {
    std::remove(path_.c_str());
    for (const char* part : {"/.config/tutti", "/.config", ""}) std::remove((directory_ + part).c_str());
  }
  void write(const std::string& text, mode_t mode) {
    std::ofstream(path_) << text;
    chmod(path_.c_str(), mode);
  }
  std::string directory_, path_;
};

TEST_F(SecretFile, IsReadFromItsVariableOrTheHomeDirectory) {
  write("open sesame\n", 0600);
  EXPECT_EQ(read(with(kTutti, {{"TUTTI_SECRET_FILE", path_}})).secret, "open sesame");
  EXPECT_EQ(read(with(kTutti, {{"HOME", directory_}})).secret, "open sesame");
  EXPECT_EQ(read(with(kTutti, {{"HOME", directory_}, {"TUTTI_SECRET", "mine"}})).secret, "mine");
  EXPECT_EQ(read({{"HOME", directory_}}).secret, "");  // a job of one needs none
  write("x", 0400);
  EXPECT_EQ(read(with(kTutti, {{"HOME", directory_}})).secret, "x");
}

TEST_F(SecretFile, IsRefusedWhenOthersMayReadItOrItIsNoSecret) {
  for (const mode_t mode : {0640, 0604, 0660, 0644, 0620}) {
    write("x", mode);
    EXPECT_TRUE(says(error_text(with(kTutti, {{"TUTTI_SECRET_FILE", path_}})), "chmod 600"));
    EXPECT_TRUE(says(error_text(with(kTutti, {{"HOME", directory_}})), "chmod 600"));
  }
  write("\n", 0600);
  EXPECT_TRUE(says(error_text(with(kTutti, {{"TUTTI_SECRET_FILE", path_}})), "is empty"));
  write(std::string(5000, 'x'), 0600);
  EXPECT_TRUE(says(error_text(with(kTutti, {{"TUTTI_SECRET_FILE", path_}})), "at most 4096"));
  EXPECT_TRUE(says(error_text(with(kTutti, {{"TUTTI_SECRET_FILE", directory_}})), "not a regular file"));
  EXPECT_TRUE(says(error_text(with(kTutti, {{"TUTTI_SECRET_FILE", path_ + "x"}})), "cannot be read"));
  const std::string pipe = directory_ + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(says(error_text(with(kTutti, {{"TUTTI_SECRET_FILE", pipe}})), "not a regular file"));
  std::remove(pipe.c_str());
}

}  // namespace
}  // namespace tutti::internal
