// Between "how do the ranks meet" (join_job.cc) and the sockets that then carry the job (plane.cc).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "control/control.h"
#include "control/relay.h"
#include "net/socket.h"

namespace tutti::internal {

// Where and how the ranks meet: found out before the control thread starts.
struct Meeting {
  std::vector<Endpoint> places;   // rank 0 listens at all of them, the others try one after the other
  std::vector<Socket> listeners;  // rank 0: at `places`
  std::string secret;             // empty: the places are local, and the kernel vouches for the user
  Clock::time_point started, deadline;
  Announcement announcement;  // rank 0's
  // Through a store: what may be wrong with it if the join fails, and if the ranks do not even meet. Each begins with
  // "; ", or is empty.
  std::string if_stale, if_missed;

  bool is_local() const { return places.front().is_local(); }
  std::string text() const;  // "node1:29500", all places
  std::string advice_on(ErrorCode failure) const;
};

// The meeting at settings.master_address:master_port: its secret, its places, and, of rank 0, the listeners there.
// Throws Error that says what to do.
Meeting meet_at_master(const Settings& settings);

// Joins the job that meets there; throws as join_job() does.
std::unique_ptr<Control> join_at(const Settings& settings, Meeting meeting);

}  // namespace tutti::internal
