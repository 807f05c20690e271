// How ranks that were started by someone else find each other: the caller's own key-value store.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace tutti {

class Store;
namespace runtime {
std::uint32_t count_join(Store& store, int rank);
}

// Implemented by the embedding framework (a PyTorch Store, etcd, a file, …). Called from one thread at a time, and only
// while a communicator is being made. Keys are short printable strings that begin with "tutti/"; values are bytes.
// Where Settings::secret is empty, the job's secret is one of them: whoever can read the store may join.
//
// The same ranks may join through it again and again, in the same order on every rank, also after a join that failed:
// each object counts the joins of its rank, and their keys begin with "tutti/1/", "tutti/2/", and so on. So every rank
// keeps one object for as long as it joins. What the object cannot know is told apart by the caller, by a store or a
// prefix of its own: a job that is started anew over a store that has outlived the one before, and several sets of
// ranks that join at the same time.
class Store {
 public:
  virtual ~Store() = default;

  // Makes `value` visible under `key` to every rank. A key is set once.
  virtual void set(const std::string& key, const std::string& value) = 0;

  // The value of `key`, waiting for it to be set; throws something derived from std::exception when `timeout` passes
  // first.
  virtual std::string get(const std::string& key, std::chrono::milliseconds timeout) = 0;

 private:
  // How many joins of this rank it has been, this one included. Thread-safe.
  friend std::uint32_t runtime::count_join(Store& store, int rank);
  std::map<int, std::uint32_t> joins_;  // by rank, as several may be threads of one process
};

// A store for ranks that are threads of one process. Thread-safe.
std::shared_ptr<Store> make_memory_store();

}  // namespace tutti
