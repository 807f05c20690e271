// How copies from one core to another behave where processors differ, and no short measurement by one rank tells.
//
// Two kinds are known: AMD's EPYC, whose cores share a cache in groups of up to 8; and Intel's Xeon, whose cores of a
// socket all share one, which holds what their second-level caches have given up.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tutti::internal {

struct BetweenCores {
  // A line of a core that shares no cache with this one takes longer. AMD (2.6 GHz, in a virtual machine): cores that
  // share a cache 10 to 40 ns, cores that do not 95 to 130. Intel (2.5 GHz, likewise): cores of a socket 50 to 90; of
  // two sockets not measured.
  std::int64_t far_ns = 70;
  // Whether `rep movsb` also pays where the peer alone reads what is written, so that none of its lines lie in this
  // core's cache. On a Xeon that is not quick at short ones (Cascade Lake), broadcast took by it and by vectors: 64 KiB
  // 7.0 and 5.8 us, 256 KiB 25.7 and 20.2. But all_gather, which writes where it has read: 512 KiB 43.5 and 52.7.
  bool strings_one_way = true;
  // How much of a ring is used at most while a rank only sends. On that Xeon, broadcast with 2 MiB and 512 KiB: 64 KiB
  // 6.1 and 5.8 us, 256 KiB 22.1 and 20.2, 4 MiB 616 and 567. lane.h has figures of EPYCs.
  std::size_t one_way_ring = ~std::size_t{0};
};

// Of this processor: by its maker and its features (CPUID), so the same in all processes of a host.
const BetweenCores& between_cores();

}  // namespace tutti::internal
