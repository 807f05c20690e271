/// @file
/// How ranks meet through a key-value store that the caller already has.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "tutti/export.h"

namespace tutti {

class Store;
namespace internal {
std::uint32_t count_join(Store& store, int rank);
}

/// A key-value store that the caller implements: over a PyTorch Store, etcd, a file, …
///
/// **Threads.** The library calls it only while Communicator::join() runs, from one thread at a time.
///
/// **Errors.** What it throws ends the join. It should be derived from std::exception.
///
/// Keys are short printable
/// strings that begin with "tutti/"; values are bytes. If Settings::secret is empty, one of the values is the job's
/// secret: who can read the store may join.
///
/// The same ranks may join through it several times, in the same order on every rank, also after a join that failed.
/// Each object counts the joins of its rank: the keys begin with "tutti/1/", "tutti/2/", and so on. So a rank keeps one
/// object for all its joins. The caller must use another store, or another prefix of keys, in two cases: if a job
/// starts again over a store that still holds the keys of an earlier job, and if several sets of ranks join at the same
/// time.
class TUTTI_API Store {
 public:
  virtual ~Store();  ///< no join() may use the store any more

  /// Makes `value` visible under `key` to every rank. The library sets a key once. May block, but not for another rank.
  virtual void set(const std::string& key, const std::string& value) = 0;

  /// Blocks until `key` is set, and returns its value. If `timeout` passes first, throws.
  virtual std::string get(const std::string& key, std::chrono::milliseconds timeout) = 0;

 private:
  // How many joins of this rank it has been, this one included. Thread-safe.
  friend std::uint32_t internal::count_join(Store& store, int rank);
  std::map<int, std::uint32_t> joins_;  // by rank, as several may be threads of one process
};

/// A store for ranks that are threads of one process. Thread-safe.
TUTTI_API std::shared_ptr<Store> make_memory_store();

}  // namespace tutti
