#include "runtime/recorder.h"

#include <unistd.h>

#include <chrono>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/job_member.h"
#include "runtime/json_text.h"
#include "runtime/record_file.h"
#include "types/call.h"
#include "types/collective.h"

namespace tutti::internal {
namespace {

using json::listed;
using json::Object;
using json::quoted;

constexpr std::chrono::milliseconds kDumpsWithin{1000};

// What users would call the communicator. A rank of the job may be another one here.
std::string name_of(std::uint64_t id, std::uint64_t whole, const Members& members) {
  if (members.is_lane())
    return std::to_string(members.job_rank_of(0)) + " to " + std::to_string(members.job_rank_of(1)) +
           (whole == kWorldId ? "" : " of " + std::to_string(whole));
  if (id == kWorldId) return "world";
  std::string ranks;
  for (const int rank : members.job_ranks()) ranks.append(ranks.empty() ? "ranks " : ",").append(std::to_string(rank));
  return ranks;
}

std::int64_t bytes_of(const Call& call) {
  if (call.flags == kSplit || call.flags == kMakeOperator || !traits_of(call.collective).has_bytes()) return 0;
  return static_cast<std::int64_t>(call.count * (call.flags == kAllocate ? 1 : size_of(call.dtype)));
}

Object call_object(const RecordedCall& recorded, const TickScale::Now& now) {
  const Call call = Call::unpack(recorded.tag);
  Object object;
  object.number("number", call.sequence).text("kind", describe_kind(call)).number("bytes", bytes_of(call));
  object.number("start_us", now.wall_us(recorded.ticks.entered));
  const bool is_over = recorded.ticks.completed != 0;
  return object.raw("end_us", is_over ? std::to_string(now.wall_us(recorded.ticks.completed)) : "null");
}

std::string wait_object(const CallWait& wait, const Members& members, const TickScale::Now& now) {
  const std::chrono::nanoseconds since(wait.since_ns);
  const auto waited = std::chrono::steady_clock::now().time_since_epoch() - since;
  Object object;
  object.number("rank", members.job_rank_of(wait.peer)).number("step", wait.step);
  object.raw("takes", wait.takes != 0 ? "true" : "false");
  object.number("since_us", now.wall_us() - std::chrono::duration_cast<std::chrono::microseconds>(waited).count());
  return object.done();
}

std::string communicator_object(std::uint64_t id, std::uint64_t whole, const Members& members,
                                const CallHistory& history, const std::string* failure, bool with_calls) {
  // Before the calls: what is said of one may be said again a little later, but not a wait of a call that comes later.
  const std::optional<CallWait> wait = history.waiting();
  const std::vector<RecordedCall> calls = history.last(with_calls ? CallTimes::kKept : 1);
  const TickScale::Now now = history.now();
  std::vector<std::string> ranks, said;
  for (const int rank : members.job_ranks()) ranks.push_back(std::to_string(rank));
  Object object;
  object.text("id", std::to_string(id)).text("name", name_of(id, whole, members)).raw("ranks", listed(ranks, ","));
  object.raw("last", calls.empty() ? "null" : call_object(calls.back(), now).done());
  const bool waits = wait && wait->peer >= 0 && wait->peer < members.size() && !calls.empty() &&
                     Call::unpack(calls.back().tag).sequence == wait->sequence;
  object.raw("waits_for", waits ? wait_object(*wait, members, now) : "null");
  object.raw("error", failure != nullptr ? quoted(*failure) : "null");
  if (!with_calls) return object.done();
  for (const RecordedCall& call : calls) said.push_back(call_object(call, now).done());
  return object.raw("calls", listed(said, ",\n   ")).done();
}

}  // namespace

Recorder::Recorder(const Settings& settings, const Log& log)
    : directory_(settings.dump_dir), size_(settings.size), log_(log) {}

Recorder::~Recorder() { wait_for_dump(); }

// The thread that writes may outlive this rank.
void Recorder::begin(const std::string& job) {
  const std::string name = "tutti-" + job + "-rank" + std::to_string(log_.rank()) + ".json";
  const std::lock_guard lock(mutex_);
  job_ = job;
  if (directory_.empty()) return;
  writer_ = std::make_shared<RecordWriter>(
      [directory = directory_, name](const std::string& text) { return write_record(directory, name, text); },
      [log = log_](const std::string& wrong) { log.warn(wrong); });
}

void Recorder::add(std::uint64_t id, std::uint64_t whole, const Members& members,
                   std::shared_ptr<const CallHistory> history) {
  const std::lock_guard lock(mutex_);
  entries_.insert_or_assign(id, Entry{whole, members, std::move(history)});
}

void Recorder::remove(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  entries_.erase(id);
  failures_.erase(id);
}

void Recorder::close() {
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
  }
  wait_for_dump();
  const std::lock_guard lock(mutex_);
  writer_.reset();  // which complains no more
}

void Recorder::failed(std::uint64_t whole, const std::string& why) {
  const std::lock_guard dump_lock(dumping_);  // so who comes second waits until the first one's dump is on its way
  {
    const std::lock_guard lock(mutex_);
    if (is_closed_ || !failures_.try_emplace(whole, why).second) return;
  }
  put_dump();
}

std::string Recorder::report(bool with_calls) const {
  std::map<std::uint64_t, Entry> entries;
  std::map<std::uint64_t, std::string> failures;
  std::string job;
  {
    const std::lock_guard lock(mutex_);
    job = job_;
    entries = entries_;
    failures = failures_;
  }
  std::vector<std::string> communicators;
  for (const auto& [id, entry] : entries) {
    const auto failure = failures.find(entry.whole);
    communicators.push_back(communicator_object(id, entry.whole, entry.members, *entry.history,
                                                failure == failures.end() ? nullptr : &failure->second, with_calls));
  }
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  Object object;
  object.number("format", 1).text("job", job).number("rank", log_.rank()).number("size", size_);
  object.number("pid", ::getpid());
  object.number("time_us", std::chrono::duration_cast<std::chrono::microseconds>(now).count());
  return object.raw("communicators", listed(communicators, ",\n  ")).done() + "\n";
}

std::shared_ptr<RecordWriter> Recorder::writer() const {
  const std::lock_guard lock(mutex_);
  return writer_;
}

void Recorder::dump() noexcept {
  const std::lock_guard lock(dumping_);
  put_dump();
}

void Recorder::put_dump() noexcept try {
  if (const auto to = writer()) to->put(report(true));
} catch (const std::exception&) {  // no memory for it
}

void Recorder::wait_for_dump() const {
  const auto to = writer();
  if (to) hangs_ = !to->wait(hangs_ ? std::chrono::milliseconds(0) : kDumpsWithin);
}

}  // namespace tutti::internal
