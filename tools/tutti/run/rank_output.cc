#include "run/rank_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace tutti::internal::tools {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kLongestLine = 65536;
constexpr std::size_t kMaxWaiting = 4 * kLongestLine;  // of a target, before the ranks have to wait
constexpr auto kSilence = 100ms;

bool are_one_file(int a, int b) {
  struct stat first {
  }, second{};
  return fstat(a, &first) == 0 && fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

bool ends_line(char c) { return c == '\n' || c == '\r'; }

}  // namespace

RankOutput::RankOutput(const std::string& name, bool tagged) : name_(name) {
  targets_.push_back(std::make_unique<Target>(STDERR_FILENO));
  err_ = targets_.back().get();
  if (!tagged) return;
  if (!are_one_file(STDOUT_FILENO, STDERR_FILENO)) targets_.push_back(std::make_unique<Target>(STDOUT_FILENO));
  out_ = targets_.back().get();
}

RankOutput::~RankOutput() {
  for (const Stream& stream : streams_) close(stream.fd);
}

void RankOutput::say(std::string_view sentence) {
  end_line(*err_);
  err_->writer.put(fmt::format("{}: {}\n", name_, sentence));
}

int RankOutput::add(int rank, int target) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  Target* const to = target == STDOUT_FILENO ? out_ : err_;
  streams_.push_back({++last_number_, ends[0], to, fmt::format("[{}] ", rank), {}});
  return ends[1];
}

void RankOutput::await(std::vector<pollfd>& fds, int& timeout_ms) const {
  const auto now = Clock::now();
  for (const auto& target : targets_) fds.push_back({target->writer.event(), POLLIN, 0});
  for (const Stream& stream : streams_) {
    const bool has_room = stream.target->writer.waiting() < kMaxWaiting;
    fds.push_back({has_room ? stream.fd : -1, POLLIN, 0});
    if (stream.line.empty() || !has_room) continue;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(stream.last + kSilence - now);
    const int ms = std::max(0, static_cast<int>(left.count()));
    timeout_ms = timeout_ms < 0 ? ms : std::min(timeout_ms, ms);
  }
}

void RankOutput::forward(std::span<const pollfd> polled) {
  auto at = polled.begin() + static_cast<std::ptrdiff_t>(targets_.size());
  const auto now = Clock::now();
  std::erase_if(streams_, [&](Stream& stream) {
    const pollfd& polled_as = *at++;
    if (polled_as.fd < 0) stream.last = now;  // it had to wait for the reader: that is no silence
    if (stream.target->writer.waiting() >= kMaxWaiting) return false;
    if (polled_as.revents != 0 && !read_from(stream)) {
      finish(stream);
      return true;
    }
    if (!stream.line.empty() && now >= stream.last + kSilence) show(stream, "");
    return false;
  });
  for (const auto& target : targets_) look_at(*target);
}

// Once a write has failed, the ranks hear of it as if they had written there themselves: their pipes are closed.
void RankOutput::look_at(Target& target) {
  target.writer.heed();
  const int problem = target.writer.problem();
  if (problem == 0 || target.given_up) return;
  target.given_up = true;
  close_streams_of(target);
  if (problem == EPIPE) return;  // who reads has read enough
  failed_ = out_ != nullptr;
  say(fmt::format("cannot write the output of the ranks: {}", std::strerror(problem)));
}

void RankOutput::close_streams_of(const Target& target) {
  std::erase_if(streams_, [&](const Stream& stream) {
    if (stream.target != &target) return false;
    close(stream.fd);
    return true;
  });
}

bool RankOutput::read_from(Stream& stream) {
  char chunk[16384];
  const ssize_t count = read(stream.fd, chunk, sizeof chunk);
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  stream.last = Clock::now();
  take(stream, {chunk, static_cast<std::size_t>(count)});
  return count > 0;
}

void RankOutput::take(Stream& stream, std::string_view text) {
  if (text.empty()) return;
  if (std::exchange(stream.after_return, false) && text.front() == '\n') {
    if (stream.target->open == stream.number) end_line(*stream.target);
    text.remove_prefix(1);
  }
  if (stream.target->open != stream.number) stream.written = 0;
  while (!text.empty()) {
    if (stream.written + stream.line.size() == kLongestLine && !ends_line(text.front())) show(stream, "\n");
    const std::size_t room = kLongestLine - stream.written - stream.line.size();
    const std::size_t end = std::min({text.find_first_of("\r\n"), text.size(), room});
    stream.line += text.substr(0, end);
    text.remove_prefix(end);
    if (text.empty() || !ends_line(text.front())) continue;
    const std::string_view rest = text.substr(text.front() == '\r' ? 1 : 0);
    const std::size_t length = text.size() - rest.size() + (rest.starts_with('\n') ? 1 : 0);
    show(stream, text.substr(0, length));
    stream.after_return = text.size() == 1 && text.front() == '\r';
    text.remove_prefix(length);
  }
}

// Writes what has come of the stream's line, and `end`: a line's end, or nothing where the line may go on.
void RankOutput::show(Stream& stream, std::string_view end) {
  Target& target = *stream.target;
  const bool goes_on = target.open == stream.number && !target.returned;
  if (target.open != 0 && target.open != stream.number) end_line(target);
  std::string text = goes_on ? "" : stream.tag;
  text += stream.line;
  text += end;
  target.writer.put(text);
  stream.written = end.empty() ? (goes_on ? stream.written : 0) + stream.line.size() : 0;
  stream.line.clear();
  target.open = end.ends_with('\n') ? 0 : stream.number;
  target.returned = end == "\r";
}

void RankOutput::finish(Stream& stream) {
  if (!stream.line.empty()) show(stream, "\n");
  if (stream.target->open == stream.number) end_line(*stream.target);
  close(stream.fd);
}

void RankOutput::end_line(Target& target) {
  if (target.open != 0) target.writer.put("\n");
  target.open = 0;
  target.returned = false;
}

// Where a write has just failed, nothing waits either: then there is a sentence about that to be written.
bool RankOutput::has_all_written() {
  const auto nothing_waits = [this] {
    return std::ranges::all_of(targets_, [](const auto& target) { return target->writer.waiting() == 0; });
  };
  if (!streams_.empty() || !nothing_waits()) return false;
  for (const auto& target : targets_) look_at(*target);
  return nothing_waits();
}

std::uint64_t RankOutput::written() const {
  std::uint64_t sum = 0;
  for (const auto& target : targets_) sum += target->writer.written();
  return sum;
}

void RankOutput::drop() {
  for (const auto& target : targets_) {
    if (target->writer.waiting() == 0) continue;
    target->writer.drop();
    if (target.get() != err_) say("nobody reads the output of the ranks: what is left of it is dropped");
  }
  for (const Stream& stream : streams_) close(stream.fd);
  streams_.clear();
}

}  // namespace tutti::internal::tools
