// How copies from one core to another behave where processors differ, and no short measurement by one rank tells.
//
// Measured were AMD's EPYC (Zen 4 and 5), whose cores share a cache in groups of 8 or 16; and one of Intel's older
// Xeons (Cascade Lake), whose cores of a socket share one. The default is for the EPYCs, and for all that was not
// measured. All processors of Intel without "fast short rep mov", a feature of newer ones, are taken for such a Xeon.
// Figures: bench/results/2026-11-28-older-xeon.md and 2026-11-28-long-copies-older-xeon.md; 2 ranks, own buffers unless
// a line says otherwise.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tutti::internal {

struct BetweenCores {
  // A line that takes longer than this is taken for one of a core that shares no cache with this one. EPYC (2.6 GHz, in
  // a virtual machine): cores that share a cache 10 to 40 ns, cores that do not 95 to 130. Older Xeon (2.5 GHz,
  // likewise): cores of a socket 50 to 90. Two sockets were not measured.
  std::int64_t far_ns = 70;
  // Whether copies take vectors of 32 bytes, not 64, unless they go past the cache. Older Xeon, broadcast by 64 and by
  // 32: 32 KiB 2.7 and 2.3 us, 64 KiB 5.3 and 4.6, 4 MiB 467 and 397. But past the cache 16 MiB 3010 and 3770.
  bool copies_by_narrow_vectors = false;
  // Whether what outgrows the cache is best written past it. Older Xeon, past the cache and through it: broadcast of 16
  // MiB 3040 and 2510 us, all_gather by 4 crowded ranks 10100 and 7860; symmetric all_gather of 64 MiB 17700 and 15600;
  // all_reduce of 16 MiB 5050 and 5080, reduce_scatter 3570 and 3480.
  bool past_cache_pays = true;
  // From how many bytes of a message (a piece, if a call is cut) on `rep movsb` pays where only the peer reads what is
  // written, so that its lines are not in this core's cache. Older Xeon, broadcast by vectors and by strings: 64
  // KiB 6.0 and 7.0 us, 256 KiB 22 and 26, 1 MiB 122 and 115 (with vectors of 64 bytes). But all_gather, which writes
  // where it has read: 64 KiB 6.4 and 5.6, 1 MiB 111 and 97.
  std::size_t strings_one_way_from = 0;
  // Whether each process measures if reads of a peer's private memory (process_vm_readv) are quick. Otherwise they are
  // taken to be quick.
  bool measures_reads = true;
  // No message below this is read: in calls that only move bytes (Communicator::send() too); of a rank that only sends
  // in a collective; in calls that combine. A read of 64 KiB takes an older Xeon 2.2 to 4.2 times as long as a copy,
  // one of 512 KiB 2 times. By rings and by reads, us for calls of so many bytes: all_gather 64 KiB 5.5 and 5.1, 128
  // KiB 9.1 and 7.5, 1 MiB 91 and 77, 16 MiB 5190 and 4280; all_to_all 4 MiB 830 and 422. Broadcast 256 KiB 18 and 17,
  // but in some processes 28. reduce_scatter 32 KiB 3.3 and 6.2, 256 KiB 18.9 and 26.9.
  std::size_t reads_moved_from = 0, reads_sent_from = 0, reads_combined_from = 0;
  // From how many bytes of a message on both ranks copy it, where one of two ranks only sends and the other only
  // receives. First, of memory that both map (SharedCopier::split). Broadcast, by one rank and by both, EPYC (Zen 4):
  // 16 KiB 0.50 and 0.60 us, 32 KiB 0.92 and 0.87 (3.7 and 1.03 where the buffers are rewritten before each call), 64
  // KiB 1.43 and 0.97, 1 MiB 23 and 12.5, 16 MiB 634 and 410; between cores that share no cache 32 KiB 2.2 and 1.95, 64
  // KiB 1.85 and 1.75, 1 MiB 24 and 14, 16 MiB 637 and 301. Older Xeon: 64 KiB 2.7 and 2.4, 128 KiB 4.1 and 3.7, 512
  // KiB 27 and 12. Not measured on other processors. Figures: bench/results/2026-11-28-split-copies-zen4.md.
  std::size_t split_shared_from = 32 << 10;
  // Then, of other memory (OrdinaryCopier::split). Older Xeon, broadcast, medians by rings and by both: 128 KiB 8.4 and
  // 8.5 us, 256 KiB 17 and 17, 1 MiB 100 and 52, 16 MiB 2530 and 2390; in the machine's quicker state 64 KiB 4.3 and
  // 3.7, 128 KiB 8.2 and 5.7, 256 KiB 16 and 11, in its slower one 64 KiB 5.3 and 6.1. EPYC (Zen 4): 64 KiB 1.9 and
  // 4.9, 1 MiB 31 and 58; between cores that share no cache 256 KiB 16.3 and 15.2, 1 MiB 49 and 65.
  std::size_t split_from = ~std::size_t{0};
  // Whether a copy into a ring, whose lines the peer has had, costs so much more than a short message takes to come
  // back that shorter messages of symmetric memory are lent (CopiesBelow). Older Xeon, copied and lent, and in brackets
  // where the buffers are rewritten before each call: all_gather of 16 KiB 2.24 and 1.47 us (4.0 and 3.1),
  // reduce_scatter of 8 KiB 1.51 and 1.14 (3.0 and 2.4), broadcast of 16 KiB 1.46 and 1.29 (4.8 and 3.1), reduce of 16
  // KiB 1.53 and 1.55 (6.8 and 3.3), all_reduce of 8 KiB 2.46 and 1.44.
  bool copies_are_dear = false;
  // In calls of up to so many bytes (mark_fetches() has an exception), a rank that will write where it has just read
  // (shm::Kept) best fetches the lines for that when it reads. Older Xeon, the time with such fetches as a part of that
  // without: all_reduce 4 KiB 0.96, 64 KiB 0.88, 256 KiB 0.99, 512 KiB 1.1; all_gather 32 KiB 0.85, reduce_scatter 256
  // KiB 0.92, 1 MiB 1.07. EPYC, Zen 4: 0.97 to 1.06. bench/results/2026-11-28-fetched-lines.md.
  std::size_t fetches_to_write_up_to = 0;
};

// Of this processor, by its maker and its features (CPUID).
const BetweenCores& between_cores();
// For tests, while no other thread asks.
void assume_between_cores(const BetweenCores& cores);

}  // namespace tutti::internal
