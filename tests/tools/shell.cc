#include "tools/shell.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace tutti::internal::tools {
namespace {

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

}  // namespace

pid_t start(const std::string& command) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  for (const char* name : {"TUTTI_RANK", "TUTTI_SIZE", "TUTTI_ATTEMPT", "TUTTI_MASTER", "TUTTI_SECRET",
                           "TUTTI_SECRET_FILE", "TUTTI_TABLE", "TUTTI_LAUNCHER", "TUTTI_DEBUG", "TUTTI_PROGRESS"})
    unsetenv(name);
  // What a shell ignores for its background jobs, and so for this test, must not be ignored by the program as well.
  for (const int signal : {SIGINT, SIGQUIT, SIGHUP}) ::signal(signal, SIG_DFL);
  setenv("TUTTI", TUTTI_PROGRAM, 1);
  execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
  _exit(127);
}

int wait_for(pid_t pid) {
  int status = 0;
  if (waitpid(pid, &status, 0) != pid) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Result shell(const std::string& command) {
  std::string folder = (std::filesystem::temp_directory_path() / "tutti-test-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return {};
  Result result;
  result.status = wait_for(start("exec > " + folder + "/out 2> " + folder + "/err; " + command));
  result.out = content_of(folder + "/out");
  result.err = content_of(folder + "/err");
  std::filesystem::remove_all(folder);
  return result;
}

int count_processes(const std::string& words) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::string line = content_of(entry.path() / "cmdline");
    for (char& c : line) c = c == '\0' ? ' ' : c;
    if (line.find(words) != std::string::npos) ++count;
  }
  return count;
}

bool reaches(const std::string& words, int count, std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (count_processes(words) != count) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

std::string unique_sleep() {
  static std::atomic<int> next{0};
  return "sleep 3" + std::to_string(getpid()) + "." + std::to_string(next++);
}

}  // namespace tutti::internal::tools
