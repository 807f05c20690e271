#include "tutti/store.h"

#include <condition_variable>
#include <map>
#include <mutex>

#include "base/process_mutex.h"
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

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
};

}  // namespace

Store::~Store() = default;

std::uint32_t internal::count_join(Store& store, int rank) {
  const std::lock_guard lock(process_mutex(ProcessWide::joins_of_stores));
  return ++store.joins_[rank];
}

std::shared_ptr<Store> make_memory_store() { return std::make_shared<MemoryStore>(); }

}  // namespace tutti
