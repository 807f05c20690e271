#include "tutti/store.h"

#include <condition_variable>
#include <map>
#include <mutex>

#include "base/process_mutex.h"
#include "control/join.h"
#include "control/join_job.h"
#include "tutti/error.h"

namespace tutti {
namespace {

class MemoryStore final : public Store {
 public:
  void set(const std::string& key, const std::string& value) override {
    const std::lock_guard lock(mutex_);
    values_[key] = value;
    changed_.notify_all();
  }

  std::string get(const std::string& key, std::chrono::milliseconds timeout) override {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, timeout, [&] { return values_.contains(key); }))
      throw Error(ErrorCode::timeout,
                  "nobody has set " + key + " in the store within " + std::to_string(timeout.count()) + " ms");
    return values_[key];
  }

  std::optional<std::int64_t> add(const std::string& key, std::int64_t delta) override {
    const std::lock_guard lock(mutex_);
    return numbers_[key] += delta;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
  std::map<std::string, std::int64_t> numbers_;
};

}  // namespace

Store::~Store() = default;
std::optional<std::int64_t> Store::add(const std::string&, std::int64_t) { return std::nullopt; }

internal::StoreJoin internal::count_join(Store& store, int rank) {
  const std::string key = "tutti/joins/" + std::to_string(rank);
  if (const auto sum = store.add(key, 1)) {
    if (*sum < 1)
      throw join_error(ErrorCode::system, rank, -1,
                       "the store says that " + std::to_string(*sum) + " is the sum of numbers above 0, under " + key);
    return {.number = *sum, .counted_by_store = true};
  }
  const std::lock_guard lock(process_mutex(ProcessWide::joins_of_stores));
  return {.number = ++store.joins_[rank]};
}

std::shared_ptr<Store> make_memory_store() { return std::make_shared<MemoryStore>(); }

}  // namespace tutti
