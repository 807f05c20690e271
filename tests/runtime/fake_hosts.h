// Two hosts on one machine: two processes, each in a network namespace of its own, which counts as a host of its own
// (the namespace is part of host_id(), and neither the loopback nor abstract Unix sockets reach out of it), joined by a
// pair of virtual Ethernet interfaces. Ranks are threads. All of it ends with the processes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tutti/communicator.h"

namespace tutti::internal {

inline constexpr int kMadeUpHosts = 2;

// Whether this process may make network namespaces, and interfaces in them.
bool can_make_hosts();

// Runs body(communicator) for every rank, all with these settings, ranks[h] being those of host h and rank 0 on host 0;
// expectations may be used in it. Returns whether all of them, on both hosts, ended without an error and without a
// failure. Requires that this process has one thread.
bool run_on_hosts(const std::vector<std::vector<int>>& ranks, const std::function<void(Communicator&)>& body,
                  const Settings& common = {});

// Runs `work` in a process of its own, in a network namespace of its own in which the shell has run `command`; before
// that its loopback is down. Returns whether it ended without an error and without a failure. Requires that this
// process has one thread.
bool run_in_namespace(const std::string& command, const std::function<void()>& work);

// Within body: the bytes that this host has sent so far to the other, headers and acknowledgements included.
std::size_t bytes_sent_by_host();

}  // namespace tutti::internal
