// How a rank becomes one of a job.
#pragma once

#include <cstdint>
#include <memory>

#include "control/control.h"

namespace tutti::internal {

// Joins the job; blocks at most settings.join_timeout (connect_timeout once it is known that nobody can be reached).
// Throws Error {unreachable, refused, timeout, invalid_argument} with a sentence that says what to do; a wrong world
// size, a rank twice or out of range is told to every rank that has joined so far, not only to the offender.
//
// store == nullptr: meet at settings.master_address:master_port, or, with no secret, at an abstract Unix socket derived
// from uid and master_port, where the kernel vouches for the user. Rank 0's `announcement` counts, the others' is
// ignored.
//
// The settings are valid (validate.h). join: which one it is of the store's for this rank, as count_join() says.
std::unique_ptr<Control> join_job(const Settings& settings, Store* store, std::uint32_t join,
                                  Announcement announcement = {});

}  // namespace tutti::internal
