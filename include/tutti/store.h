// How ranks that were started by someone else find each other: the caller's own key-value store.
#pragma once

#include <chrono>
#include <memory>
#include <string>

namespace tutti {

// Implemented by the embedding framework (a PyTorch Store, etcd, a file, …). Called from one thread at a time, and only
// while a communicator is being made. Keys are short printable strings that begin with "tutti/"; values are bytes.
// Where Settings::secret is empty, the job's secret is one of them: whoever can read the store may join.
class Store {
 public:
  virtual ~Store() = default;

  // Makes `value` visible under `key` to every rank. A key is set once: a store (or a prefix in it) serves one join.
  virtual void set(const std::string& key, const std::string& value) = 0;

  // The value of `key`, waiting for it to be set; throws something derived from std::exception when `timeout` passes
  // first.
  virtual std::string get(const std::string& key, std::chrono::milliseconds timeout) = 0;
};

// A store for ranks that are threads of one process. Thread-safe.
std::shared_ptr<Store> make_memory_store();

}  // namespace tutti
