// `tutti status` beside a job that stands still.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>

#include "control/status_protocol.h"
#include "net/socket.h"
#include "tools/shell.h"

namespace tutti::internal::tools {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using namespace std::chrono_literals;

std::string read_file(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

bool comes(const std::function<bool()>& so) {
  const auto until = std::chrono::steady_clock::now() + 20s;
  while (!so()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(20ms);
  }
  return true;
}

// A job whose ranks stand still until it ends.
class Job {
 public:
  Job(int ranks, const std::string& way, const std::string& environment = "")
      : ranks_(static_cast<std::size_t>(ranks)),
        folder_(fs::temp_directory_path() /
                ("tutti-status-test-" + std::to_string(::getpid()) + "-" + unique_sleep())) {
    fs::create_directory(folder_);
    launcher_ = start("exec env TUTTI_DUMP_DIR='" + dumps() + "' " + environment + " $TUTTI run -n " +
                      std::to_string(ranks) + " " STATUS_RANK " '" + (folder_ / "go").string() + "' '" + way + "'");
  }
  ~Job() {
    end();
    fs::remove_all(folder_);
  }
  // For a job that does not end by itself.
  void interrupt() { ::kill(launcher_, SIGTERM); }
  int end() {
    if (launcher_ < 0) return 0;
    std::ofstream(folder_ / "go").put('\n');
    return wait_for(std::exchange(launcher_, -1));
  }
  std::string dumps() const { return folder_.string(); }
  std::string number() {  // once the ranks have joined
    if (number_.empty())
      comes([&] {
        const std::string out = find();
        if (!out.empty()) number_ = out;
        return !number_.empty();
      });
    return number_;
  }
  // What `tutti status` prints once it has all these words.
  template <class... Words>
  std::string says(const Words&... words) {
    std::string out;
    comes([&] {
      out = shell("$TUTTI status " + number()).out;
      return ((out.find(words) != std::string::npos) && ...);
    });
    return out;
  }
  // Once all ranks answer.
  json asked() {
    json answer;
    const bool is_whole = comes([&] {
      answer = json::parse(shell("$TUTTI status --json " + number()).out, nullptr, false);
      if (!answer.contains("ranks") || answer["ranks"].size() != ranks_) return false;
      const json& ranks = answer["ranks"];
      return std::all_of(ranks.begin(), ranks.end(), [](const json& rank) { return rank.contains("communicators"); });
    });
    if (!is_whole) throw std::runtime_error("not all ranks answer");
    return answer;
  }
  // A dump, by the end of its name; empty: there is none.
  fs::path find_file(const std::string& end) const {
    for (const auto& entry : fs::directory_iterator(folder_)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("tutti-") && name.ends_with(end)) return entry.path();
    }
    return {};
  }
  fs::path file_of(int rank) { return folder_ / ("tutti-" + number() + "-rank" + std::to_string(rank) + ".json"); }

 private:
  // Other tests' jobs may run on this host. A rank of this one has the file's name on its command line.
  std::string find() const {
    std::ifstream sockets("/proc/net/unix");
    const std::string prefix = "@" + status_prefix();
    for (std::string line; std::getline(sockets, line);) {
      const std::size_t at = line.find(prefix);
      if (at == std::string::npos || !line.ends_with("-0")) continue;
      const std::string job = line.substr(at + prefix.size(), line.size() - 2 - at - prefix.size());
      const Result asked = shell("$TUTTI status --json " + job);
      if (asked.status != 0) continue;
      const json ranks = json::parse(asked.out)["ranks"];
      const std::string pid = std::to_string(ranks[0].value("pid", 0));
      if (read_file("/proc/" + pid + "/cmdline").find(folder_.string()) != std::string::npos) return job;
    }
    return "";
  }

  const std::size_t ranks_;
  const fs::path folder_;
  pid_t launcher_ = -1;
  std::string number_;
};

// Is said of the rank that sleeps, once it does. Before, it may still be in that call.
constexpr const char* kHasCompleted = "it completed all_reduce #3";

TEST(Status, NamesTheRankThatSleeps) {
  Job job(3, "rank 1 sleeps");
  const std::string out = job.says("of which 3 answer", kHasCompleted, "Waiting for it, in world: ranks 0, 2.");
  EXPECT_THAT(out, HasSubstr("job " + job.number() + ": 3 ranks, of which 3 answer here"));
  EXPECT_THAT(out, HasSubstr("Rank 1 has not entered all_reduce #4 (float32 x 2, sum"));
  EXPECT_THAT(out, HasSubstr("it completed all_reduce #3 (float32 x 2, max"));
  EXPECT_THAT(out, HasSubstr("Waiting for it, in world: ranks 0, 2."));
  const json asked = job.asked();
  EXPECT_EQ(asked["ranks"].size(), 3u);
  EXPECT_EQ(asked["ranks"][0]["communicators"][0]["waits_for"]["rank"], 1);
  EXPECT_EQ(asked["ranks"][1]["communicators"][0]["calls"].size(), 3u);
  EXPECT_EQ(job.end(), 0);
}

TEST(Status, NamesACycle) {
  Job job(3, "a cycle", "TUTTI_TIMEOUT=60");
  const std::string cycle = "A cycle: rank 0 waits for rank 1 in transfer #1";
  EXPECT_THAT(job.says(cycle), HasSubstr(cycle));
  job.interrupt();
}

TEST(Status, NamesARankThatIsStopped) {
  Job job(3, "rank 1 sleeps");
  job.says("Rank 1 has not entered");
  const pid_t pid = job.asked()["ranks"][1]["pid"];
  ::kill(pid, SIGSTOP);
  const auto begin = std::chrono::steady_clock::now();
  const Result result = shell("$TUTTI status " + job.number());
  const auto took = std::chrono::steady_clock::now() - begin;
  ::kill(pid, SIGCONT);
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("Rank 1 does not answer: its process is stopped"));
  EXPECT_LT(took, 10s);
}

TEST(Status, WritesATraceOfEveryRank) {
  Job job(2, "rank 1 sleeps");
  job.says("Rank 1 has not entered", kHasCompleted);
  const std::string path = job.dumps() + "/trace.json";
  EXPECT_EQ(shell("$TUTTI status --trace '" + path + "' " + job.number()).status, 0);
  EXPECT_EQ(shell("python3 -m json.tool '" + path + "'").status, 0);
  int calls[2] = {}, unfinished = 0;
  const json trace = json::parse(read_file(path));
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    ++calls[event["pid"].get<int>()];
    if (!event["args"]["completed"]) ++unfinished;
    EXPECT_GE(event["dur"].get<std::int64_t>(), 0);
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    EXPECT_LT(std::abs(event["ts"].get<std::int64_t>() / 1'000'000 -
                       std::chrono::duration_cast<std::chrono::seconds>(now).count()),
              60);
  }
  EXPECT_EQ(calls[0], 4);
  EXPECT_EQ(calls[1], 3);
  EXPECT_EQ(unfinished, 1);
}

TEST(Status, SavesWhatItCanReadAgain) {
  Job job(2, "rank 1 sleeps");
  job.says("Rank 1 has not entered", kHasCompleted);
  EXPECT_EQ(shell("$TUTTI status --save '" + job.dumps() + "' " + job.number()).status, 0);
  const std::string number = job.number();
  const Result again = shell("$TUTTI status --dumps '" + job.dumps() + "' " + number);
  EXPECT_THAT(again.out, HasSubstr("Rank 1 has not entered all_reduce #4"));
  EXPECT_EQ(shell("$TUTTI status --dumps /nowhere").status, 2);
}

TEST(Status, FindsNoJobThatIsNotThere) {
  EXPECT_EQ(shell("$TUTTI status 123").status, 1);
  Job job(2, "all sleep");
  const std::string number = job.number();
  ASSERT_FALSE(number.empty());
  EXPECT_EQ(job.end(), 0);
  EXPECT_EQ(shell("$TUTTI status " + number).status, 1);
  EXPECT_THAT(read_file("/proc/net/unix"), testing::Not(HasSubstr("-" + number + "-")));
}

// Whoever says nothing holds up the next one for two seconds at most, and the job not at all.
TEST(Status, OutlivesACallerThatSaysNothing) {
  Job job(2, "all sleep");
  int error = 0;
  const Socket silent = start_connecting(Endpoint::local(status_name(job.number(), 0)), error);
  ASSERT_EQ(error, 0);
  EXPECT_THAT(job.says("of which 2 answer"), HasSubstr("of which 2 answer"));
}

TEST(Status, TurnsAwayAProcessOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  Job job(2, "all sleep");
  const std::string name = status_name(job.number(), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setresuid(65534, 65534, 65534) != 0) ::_exit(2);
    int error = 0;
    const Socket socket = start_connecting(Endpoint::local(name), error);
    ::send(socket.fd(), &kStatusWhole, 1, MSG_NOSIGNAL);
    for (int i = 0; i < 500; ++i) {
      char byte;
      const ssize_t count = ::recv(socket.fd(), &byte, 1, MSG_DONTWAIT);
      if (count > 0) ::_exit(1);                                          // it was told something
      if (count == 0 || (errno != EAGAIN && errno != EINTR)) ::_exit(0);  // the connection was closed
      ::usleep(10'000);
    }
    ::_exit(3);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// --- files

TEST(Dump, AtAnErrorIsJsonThatOnlyTheUserReads) {
  Job job(2, "a timeout", "TUTTI_TIMEOUT=3");
  // Not by the job's number, which it says only while it lives.
  fs::path file;
  ASSERT_TRUE(comes([&] { return !(file = job.find_file("-rank0.json")).empty(); }));
  struct stat about {};
  ASSERT_EQ(::lstat(file.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
  EXPECT_EQ(shell("python3 -m json.tool '" + file.string() + "'").status, 0);
  const json rank = json::parse(read_file(file));
  const json& world = rank["communicators"][0];
  EXPECT_THAT(world["error"].get<std::string>(), HasSubstr("has not entered all_reduce #4"));
  EXPECT_EQ(world["calls"].size(), 4u);
  EXPECT_TRUE(world["calls"][3]["end_us"].is_null());
  EXPECT_EQ(world["calls"][0]["bytes"], 8);
  EXPECT_EQ(world["waits_for"]["rank"], 1);
  EXPECT_EQ(job.end(), 1);
  for (const auto& entry : fs::directory_iterator(job.dumps())) EXPECT_NE(entry.path().filename().string()[0], '.');
}

TEST(Dump, ComesAtTheSignalThatIsNamed) {
  Job job(2, "rank 1 sleeps", "TUTTI_DUMP_SIGNAL=USR2");
  job.says("Rank 1 has not entered");
  const fs::path file = job.file_of(1);
  EXPECT_FALSE(fs::exists(file));
  fs::create_symlink("/dev/null", file);
  ::kill(job.asked()["ranks"][1]["pid"].get<pid_t>(), SIGUSR2);
  EXPECT_TRUE(comes([&] { return !fs::is_symlink(file); }));  // the link is replaced
  EXPECT_EQ(json::parse(read_file(file))["rank"], 1);
  EXPECT_EQ(job.end(), 0);
}

TEST(Dump, NeedsNoDirectoryAndNoSignal) {
  Job job(2, "rank 1 sleeps", "TUTTI_DUMP_DIR= ");
  job.says("Rank 1 has not entered");
  EXPECT_EQ(job.end(), 0);
  for (const auto& entry : fs::directory_iterator(job.dumps())) EXPECT_EQ(entry.path().filename(), "go");
}

}  // namespace
}  // namespace tutti::internal::tools
