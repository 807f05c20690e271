// Mutexes of the whole process, which one thread may hold when another one forks.
#pragma once

#include <cstdint>
#include <mutex>

namespace tutti::internal {

// What each of them guards.
enum class ProcessWide : std::uint8_t { joins_of_stores, unique_ids, segments, openssl, dump_signals, count };

// Never destroyed. fork() waits until nobody holds it: else a child would find it held for ever, by a thread that the
// child does not have. Who holds it takes no other mutex and does not fork. Handlers of fork() that take one, such as
// those that destroy something in the parent, are to be registered after the first call of this function.
std::mutex& process_mutex(ProcessWide what);

}  // namespace tutti::internal
