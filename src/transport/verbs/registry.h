// Memory that this rank has registered, found by address.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>

#include "transport/verbs/fabric.h"

namespace tutti::verbs {

// Thread-safe.
class Registry {
 public:
  explicit Registry(Fabric& fabric) : fabric_(fabric) {}

  // Until remove() of the same start, data[0, bytes) is sent from and written to directly. May overlap what else is
  // registered. Throws Error{system}.
  void add(std::byte* data, std::size_t bytes);
  void remove(std::byte* data);

  // What holds all of data[0, bytes); nullptr if nothing does. It stays registered while the result lives.
  std::shared_ptr<const Registration> find(const std::byte* data, std::size_t bytes) const;

  std::size_t bytes() const;

 private:
  struct Region {
    std::size_t bytes;
    std::shared_ptr<const Registration> registration;
  };
  Fabric& fabric_;
  mutable std::mutex mutex_;
  std::multimap<const std::byte*, Region> regions_;  // by start
};

}  // namespace tutti::verbs
