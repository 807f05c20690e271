// A set of processors or memory nodes as hwloc takes it.
#pragma once

#include <hwloc.h>

#include <memory>

#include "topology/processors.h"

namespace tutti::internal::topology {

class Bitmap {
 public:
  Bitmap() : bits_(hwloc_bitmap_alloc()) {}
  explicit Bitmap(const Processors& processors) : Bitmap() {
    for (const int processor : processors) hwloc_bitmap_set(get(), static_cast<unsigned>(processor));
  }
  hwloc_bitmap_t get() const { return bits_.get(); }

 private:
  struct Free {
    void operator()(hwloc_bitmap_t bits) const { hwloc_bitmap_free(bits); }
  };
  std::unique_ptr<hwloc_bitmap_s, Free> bits_;
};

}  // namespace tutti::internal::topology
