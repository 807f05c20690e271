// How a rank becomes one of a job.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "control/control.h"
#include "net/socket.h"

namespace tutti::internal {

// A meeting place that was made before any rank joins. Its secret is the job's, whatever the settings say.
struct Appointment {
  Endpoint place;
  std::string secret;  // not empty
  Socket listener;     // rank 0: it listens at `place`
};

// Which join of a rank through a store it is.
struct StoreJoin {
  std::int64_t number = 0;        // from 1
  bool counted_by_store = false;  // and not by the object, which knows nothing of others over the same store
};
// This one included, also if it fails. Thread-safe. Throws what the store throws, and Error{system} for no sum.
StoreJoin count_join(Store& store, int rank);

// Joins the job; blocks at most settings.join_timeout (connect_timeout once it is known that nobody can be reached).
// Throws Error {unreachable, refused, timeout, invalid_argument} with a sentence that says what to do; a wrong world
// size, a rank twice or out of range is told to every rank that has joined so far, not only to the offender.
//
// store == nullptr: meet at settings.master_address:master_port, or, with no secret, at an abstract Unix socket derived
// from uid and master_port, where the kernel vouches for the user. Rank 0's `announcement` counts, the others' is
// ignored.
//
// With an appointment, which excludes a store, the ranks meet there and nowhere else.
//
// The settings are valid (validate.h). join: of the store.
std::unique_ptr<Control> join_job(const Settings& settings, Store* store, StoreJoin join,
                                  Announcement announcement = {}, std::optional<Appointment> appointment = {});

}  // namespace tutti::internal
