#include "machine/gpu.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <string>

namespace tutti::internal::tools {
namespace {

[[noreturn]] void refuse(const std::string& why) { throw std::runtime_error("--device cuda: " + why); }

// All that is written into a pipe, whose other end nobody else holds.
std::string read_all(int fd) {
  std::string text;
  char some[512];
  for (ssize_t got; (got = read(fd, some, sizeof some)) != 0;) {
    if (got > 0) text.append(some, static_cast<std::size_t>(got));
    if (got < 0 && errno != EINTR) break;
  }
  return text;
}

// In the child: its reason, or nothing, is all that it says.
[[noreturn]] void look(int fd) {
  const cuda::Devices found = cuda::find_devices();
  const std::string why = found.usable.empty() ? found.why_none() : "";
  const bool told = write(fd, why.data(), why.size()) == static_cast<ssize_t>(why.size());
  _exit(told ? 0 : 1);
}

}  // namespace

std::vector<cuda::Device> require_gpus() {
  const cuda::Devices found = cuda::find_devices();
  if (found.usable.empty()) refuse(found.why_none());
  return found.usable;
}

cuda::Device require_gpu() { return require_gpus().front(); }

void require_gpu_of_children() {
  int fds[2];
  if (pipe(fds) != 0) refuse("the system refuses another pipe, by which a process would say what it finds");
  const pid_t child = fork();
  if (child == 0) look(fds[1]);
  close(fds[1]);
  const std::string why = child < 0 ? "the system refuses another process, to look for a GPU" : read_all(fds[0]);
  close(fds[0]);
  int status = 0;
  if (child > 0) waitpid(child, &status, 0);
  if (!why.empty()) refuse(why);
  if (status != 0) refuse("the process that looked for a GPU did not survive it");
}

}  // namespace tutti::internal::tools
