#include "rank_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace tutti::tools {
namespace {

// False when it cannot be written: nobody reads any more, or there is no room.
bool write_all(int fd, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = write(fd, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    done += static_cast<std::size_t>(written);
  }
  return true;
}

}  // namespace

RankOutput::~RankOutput() {
  for (const Stream& stream : streams_) close(stream.fd);
}

int RankOutput::add(int rank, int target) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  streams_.push_back({ends[0], target, fmt::format("[{}] ", rank), {}});
  return ends[1];
}

void RankOutput::forward() {
  std::erase_if(streams_, [](Stream& stream) {
    if (forward(stream)) return false;
    close(stream.fd);
    return true;
  });
}

bool RankOutput::forward(Stream& stream) {
  char chunk[4096];
  std::string ready;
  bool open = true;
  while (true) {
    const ssize_t count = read(stream.fd, chunk, sizeof chunk);
    if (count <= 0) {
      open = count < 0;
      break;
    }
    stream.line.append(chunk, static_cast<std::size_t>(count));
    for (std::size_t end; (end = stream.line.find('\n')) != std::string::npos;) {
      ready += stream.tag + stream.line.substr(0, end + 1);
      stream.line.erase(0, end + 1);
    }
    if (ready.size() > 1 << 20) break;  // let the other ranks have their turn
  }
  if (!open && !stream.line.empty()) ready += stream.tag + stream.line + "\n";
  return write_all(stream.target, ready) &&
         open;  // once closed, the rank hears of it as if it had written there itself
}

std::vector<int> RankOutput::fds() const {
  std::vector<int> fds;
  for (const Stream& stream : streams_) fds.push_back(stream.fd);
  return fds;
}

}  // namespace tutti::tools
