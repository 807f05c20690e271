#include "runtime/grouped_join.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

#include "tutti/error.h"

namespace tutti::internal {
namespace {

using Line = std::vector<GroupedJoin*>;  // one after the other

std::vector<Line> lines_of(const std::vector<std::unique_ptr<GroupedJoin>>& joins) {
  std::vector<Line> lines;
  for (const auto& join : joins) {
    const void* const follows = join->follows();
    const auto line = std::ranges::find_if(
        lines, [&](const Line& known) { return follows != nullptr && known.front()->follows() == follows; });
    if (line != lines.end()) {
      line->push_back(join.get());
    } else {
      lines.push_back({join.get()});
    }
  }
  return lines;
}

// In time, as what fails first is why the others fail.
class FirstError {
 public:
  void note(const std::exception_ptr& error) {
    const std::lock_guard lock(mutex_);
    if (first_ == nullptr) first_ = error;
  }
  const std::exception_ptr& get() const { return first_; }

 private:
  std::mutex mutex_;
  std::exception_ptr first_;
};

}  // namespace

void join_together(const std::vector<std::unique_ptr<GroupedJoin>>& joins) {
  if (joins.empty()) return;
  const std::vector<Line> lines = lines_of(joins);
  FirstError first;
  const auto run = [&first](const Line& line) {
    try {
      for (GroupedJoin* const join : line) join->join();
    } catch (...) {
      first.note(std::current_exception());
    }
  };
  // The last on this thread: a job that one thread uses is quicker if that thread has made it (BiasedMutex).
  std::vector<std::thread> threads;
  threads.reserve(lines.size());
  try {
    for (std::size_t i = 0; i + 1 < lines.size(); ++i) threads.emplace_back(run, std::cref(lines[i]));
    run(lines.back());
  } catch (const std::exception& failure) {  // the joins that have begun end by the join timeout, at the latest
    first.note(std::make_exception_ptr(
        Error(ErrorCode::system, std::string("no thread for a join of the group: ") + failure.what())));
  }
  for (std::thread& thread : threads) thread.join();
  if (first.get() != nullptr) std::rethrow_exception(first.get());
  for (const auto& join : joins) join->hand_over();
}

}  // namespace tutti::internal
