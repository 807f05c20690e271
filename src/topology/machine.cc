#include "topology/machine.h"

#include <hwloc.h>

#include <algorithm>
#include <fstream>
#include <numeric>

#include "topology/bitmap.h"
#include "tutti/error.h"

namespace tutti::internal::topology {
namespace {

Processors to_processors(hwloc_const_bitmap_t bits) {
  Processors processors;
  for (int i = hwloc_bitmap_first(bits); i >= 0; i = hwloc_bitmap_next(bits, i)) processors.push_back(i);
  return processors;
}

// Some virtual machines have processors and no cores: each is one then.
hwloc_obj_t core_of(hwloc_topology_t topology, hwloc_obj_t processor) {
  const hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, processor);
  return core != nullptr ? core : processor;
}

bool is_in(hwloc_obj_t part, const Processors& core) {
  return hwloc_bitmap_isset(part->cpuset, static_cast<unsigned>(core.front())) != 0;
}

// The smallest part of `part` with at least `count` of the cores; the first of several.
hwloc_obj_t smallest_with(hwloc_obj_t part, const std::vector<Processors>& cores, std::ptrdiff_t count) {
  for (unsigned i = 0; i < part->arity; ++i) {
    const hwloc_obj_t child = part->children[i];
    if (std::ranges::count_if(cores, [&](const Processors& core) { return is_in(child, core); }) >= count)
      return smallest_with(child, cores, count);
  }
  return part;
}

// How many ranks each core gets: of its hardware threads the first before any second.
std::vector<int> ranks_by_core(const std::vector<Processors>& cores, int ranks) {
  std::vector<int> counts(cores.size(), 0);
  while (ranks > 0)
    for (std::size_t c = 0; c < cores.size() && ranks > 0; ++c)
      if (counts[c] < static_cast<int>(cores[c].size())) {
        ++counts[c];
        --ranks;
      }
  return counts;
}

template <class Describe>
hwloc_topology_t load(const Describe& describe) {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) throw Error(ErrorCode::system, "hwloc cannot make a topology");
  if (describe(topology) && hwloc_topology_load(topology) == 0) return topology;
  hwloc_topology_destroy(topology);
  throw Error(ErrorCode::system, "hwloc cannot read this topology");
}

bool looks_at_devices(hwloc_topology_t topology) {
  return hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) == 0;
}

}  // namespace

Machine::Machine(hwloc_topology* loaded) : topology_(loaded) {}

void Machine::Destroy::operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }

Machine Machine::here() {
  return Machine(load([](hwloc_topology_t) { return true; }));
}

Machine Machine::here_with_devices() { return Machine(load(looks_at_devices)); }

Machine Machine::synthetic(const std::string& description) {
  return Machine(load(
      [&](hwloc_topology_t topology) { return hwloc_topology_set_synthetic(topology, description.c_str()) == 0; }));
}

Machine Machine::recorded(const std::string& xml) {
  const int bytes = static_cast<int>(xml.size()) + 1;
  return Machine(load([&](hwloc_topology_t topology) {
    return looks_at_devices(topology) && hwloc_topology_set_xmlbuffer(topology, xml.c_str(), bytes) == 0;
  }));
}

Processors Machine::processors() const { return to_processors(hwloc_topology_get_allowed_cpuset(topology_.get())); }

std::vector<Processors> Machine::cores(const Processors& among) const {
  std::vector<Processors> cores;
  hwloc_obj_t last = nullptr;
  for (hwloc_obj_t next = nullptr;
       (next = hwloc_get_next_obj_by_type(topology_.get(), HWLOC_OBJ_PU, next)) != nullptr;) {
    if (!std::ranges::binary_search(among, static_cast<int>(next->os_index))) continue;
    const hwloc_obj_t core = core_of(topology_.get(), next);
    if (core != last) cores.emplace_back();
    cores.back().push_back(static_cast<int>(next->os_index));
    last = core;
  }
  for (Processors& core : cores) std::ranges::sort(core);
  return cores;
}

std::vector<Processors> Machine::place(const Processors& among, int ranks) const {
  std::vector<Processors> all = cores(among);
  const std::size_t threads =
      std::accumulate(all.begin(), all.end(), std::size_t{0},
                      [](std::size_t sum, const Processors& core) { return sum + core.size(); });
  if (ranks < 1 || threads < static_cast<std::size_t>(ranks)) return {};
  if (static_cast<std::size_t>(ranks) <= all.size()) {
    const hwloc_obj_t part = smallest_with(hwloc_get_root_obj(topology_.get()), all, ranks);
    std::erase_if(all, [part](const Processors& core) { return !is_in(part, core); });
  }
  const std::vector<int> counts = ranks_by_core(all, ranks);
  std::vector<Processors> places;
  for (std::size_t c = 0; c < all.size(); ++c) {
    if (counts[c] == 1) places.push_back(all[c]);
    for (int i = 0; counts[c] > 1 && i < counts[c]; ++i) places.push_back({all[c][static_cast<std::size_t>(i)]});
  }
  return places;
}

bool Machine::keep_on(int node, void* at, std::size_t bytes) const noexcept {
  const Bitmap nodes({node});
  // Not strict: a preference, so that a full node is no error. For shared memory it holds for all who map it.
  return hwloc_set_area_membind(topology_.get(), at, bytes, nodes.get(), HWLOC_MEMBIND_BIND, HWLOC_MEMBIND_BYNODESET) ==
         0;
}

bool has_several_nodes(const std::string& root) {
  std::ifstream file(root + "/sys/devices/system/node/has_memory");
  std::string nodes;  // "0", "0-1", "0,2"
  return file >> nodes && nodes.find_first_of(",-") != std::string::npos;
}

int node_of_this_thread() noexcept try {
  if (!has_several_nodes()) return -1;
  return Machine::here().node_of(allowed_processors()).value_or(-1);
} catch (const Error&) {
  return -1;
}

void keep_near_this_thread(void* at, std::size_t bytes) noexcept try {
  if (!has_several_nodes()) return;  // before hwloc, which takes milliseconds
  const Machine machine = Machine::here();
  if (const auto node = machine.node_of(allowed_processors())) machine.keep_on(*node, at, bytes);
} catch (const Error&) {
}

}  // namespace tutti::internal::topology
