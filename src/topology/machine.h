// How a machine's cores and memory lie to each other, as hwloc knows it, and where ranks go on it. All but here(),
// here_with_devices() and keep_on() is a function of the topology alone, so it is tested on machines that are made up
// or were recorded.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "topology/processors.h"

struct hwloc_topology;

namespace tutti::internal::topology {

// Where two PCI devices meet; the nearest first.
enum class Proximity {
  pci_switch,    // below the bridges of one root port: nothing between them passes the processor
  root_complex,  // at one host bridge
  part,          // in one package, or another part of the machine
  machine,       // nowhere but in the whole
};

// Where a PCI device hangs, and what is near it.
struct Attachment {
  std::optional<int> node;           // its memory node, as node_of(): nothing where there is but one
  std::optional<int> package;        // by the system's number; nothing where it is at no one's
  double link_gbs = 0;               // of its PCIe link as it was when hwloc looked, GB/s; 0: not known
  std::vector<std::string> nearest;  // of the network and RDMA devices those that no other is nearer than: "mlx5_0"
  Proximity proximity = Proximity::pci_switch;  // with these
};

// The parts of the machine that a place lies in, each by its number among its kind, as hwloc counts from 0; -1: none
// has all of the place.
struct Position {
  int cache_level = 0;          // of the largest cache; 0: none
  int cache = -1;               // among those of the level
  std::size_t cache_bytes = 0;  // 0: not known
  int node = -1;                // memory
  int package = -1;
};

// Thread-safe: nothing changes it.
class Machine {
 public:
  // Each throws Error{system} when hwloc cannot make one.
  static Machine here();
  static Machine here_with_devices();                        // with PCI devices, which takes longer to look at
  static Machine synthetic(const std::string& description);  // as of lstopo -i: "package:2 core:4 pu:2"
  static Machine recorded(const std::string& xml);           // what lstopo --of xml has written

  // All that the system lets anybody of this container use; a process may be allowed less.
  Processors processors() const;

  // The cores that have some of `among`, from one neighbour to the next; of each the hardware threads in `among`.
  std::vector<Processors> cores(const Processors& among) const;

  // Where each of `ranks` ranks should run, of `among`: on a core each, with all of its threads, and where there are
  // too few cores on a hardware thread each. Consecutive ranks are neighbours: they fill the smallest part of the
  // machine (cache, node, package) that has room for all; if only the whole has, one part after the other. Empty where
  // they outnumber the processors.
  std::vector<Processors> place(const Processors& among, int ranks) const;

  // The memory node that is nearest to a thread which runs on `where`, by the system's number. Nothing where there is
  // but one, and where none is nearer than another to all of `where`.
  std::optional<int> node_of(const Processors& where) const;

  // Of a place that place() gave, or of other processors. Of no processors it is in no part.
  Position position_of(const Processors& where) const;

  // Of the PCI device "0000:3b:00.0". Nothing where the topology has none at this address, as here() has none at all.
  std::optional<Attachment> attachment_of(const std::string& pci) const;

  // Has the system take memory for [at, at + bytes) from `node` as long as there is some, whoever first touches it.
  // at: a multiple of the page size. False when the system refuses.
  bool keep_on(int node, void* at, std::size_t bytes) const noexcept;

 private:
  explicit Machine(hwloc_topology* loaded);
  struct Destroy {
    void operator()(hwloc_topology* topology) const;
  };
  std::unique_ptr<hwloc_topology, Destroy> topology_;
};

// Whether the system knows of several nodes that have memory. `root` stands before /sys.
bool has_several_nodes(const std::string& root = "");

// The memory node that this thread is bound near to, by the system's number; -1 where there is but one, or it is bound
// to none.
int node_of_this_thread() noexcept;

// Keeps the shared memory [at, at + bytes) on the node to which the calling thread is bound. On a machine with one
// node, and for a thread that is bound to none, it does nothing; nor does it report that the system refuses, which only
// costs speed.
void keep_near_this_thread(void* at, std::size_t bytes) noexcept;

}  // namespace tutti::internal::topology
