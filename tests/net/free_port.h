// Where a job of a test meets.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <random>
#include <string>

#include "net/socket.h"

namespace tutti::internal {

// A port of the loopback at which nobody was a moment ago, nor at the local socket where ranks without a secret meet.
// The system gives none of these ports to a socket that connects: else a connection of another test could get it before
// the job does.
inline std::uint16_t free_port() {
  const auto can_be_bound = [](const Endpoint& place) {
    const Socket socket(::socket(place.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    return socket && ::bind(socket.fd(), place.data(), place.bytes()) == 0;
  };
  constexpr int kFirst = 15'000, kLast = 28'000, kEnough = 1000;
  int first_of_system = 0;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first_of_system;
  const int last = std::min(kLast, first_of_system - 1);
  const Endpoint here = loopback();
  std::random_device random;
  for (int tries = 0; tries < 1000 && last - kFirst >= kEnough; ++tries) {
    const int drawn = std::uniform_int_distribution<int>(kFirst, last)(random);
    const auto port = static_cast<std::uint16_t>(drawn);
    const auto name = "tutti-" + std::to_string(::geteuid()) + "-" + std::to_string(drawn);  // as in join_job.cc
    if (can_be_bound(here.with_port(port)) && can_be_bound(Endpoint::local(name))) return port;
  }
  return own_end(listen_in(here, 0, 0).fd()).port();  // no room below the system's ports
}

}  // namespace tutti::internal
