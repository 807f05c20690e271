/// @file
/// How ranks meet through a key-value store that the caller already has.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "tutti/export.h"

namespace tutti {

class Store;
namespace internal {
struct StoreJoin;
StoreJoin count_join(Store& store, int rank);
}  // namespace internal

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
/// The same ranks may join through it several times, in the same order on every rank. A join that failed counts, so
/// every rank must have begun it. The keys of the joins begin with "tutti/1/", "tutti/2/", and so on.
///
/// If the store can add(), it counts the joins of each rank itself, under "tutti/joins/0", "tutti/joins/1", and so on.
/// So each join may use another object or another process. Else each object counts the joins of its rank, and a rank
/// keeps one object for all its joins; a job that starts again over a store which still holds the keys of an earlier
/// job must use another store or another prefix of keys. Several sets of ranks that join at the same time must always
/// do so.
class TUTTI_API Store {
 public:
  virtual ~Store();  ///< no join() may use the store any more

  /// Makes `value` visible under `key` to every rank. The library sets a key once. May block, but not for another rank.
  virtual void set(const std::string& key, const std::string& value) = 0;

  /// Blocks until `key` is set, and returns its value. If `timeout` passes first, throws.
  virtual std::string get(const std::string& key, std::chrono::milliseconds timeout) = 0;

  /// Adds `delta` to the number under `key`, which is 0 at first, and returns the sum: atomically among all ranks.
  /// May block, but not for another rank. A store that cannot do it returns nothing, as this function does; either the
  /// stores of all ranks can, or none.
  virtual std::optional<std::int64_t> add(const std::string& key, std::int64_t delta);

 private:
  friend internal::StoreJoin internal::count_join(Store& store, int rank);
  std::map<int, std::uint32_t> joins_;  // by rank, as several may be threads of one process
};

/// A store for ranks that are threads of one process. Thread-safe.
TUTTI_API std::shared_ptr<Store> make_memory_store();

}  // namespace tutti
