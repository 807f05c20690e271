// Memory that this rank has registered, found by address.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "transport/verbs/fabric.h"

namespace tutti::internal::verbs {

// Thread-safe.
class Registry {
 public:
  explicit Registry(std::shared_ptr<Fabric> fabric) : state_(std::make_shared<State>(std::move(fabric))) {}

  // While the result lives, which may be longer than this registry, messages in data[0, bytes) are sent from there and
  // written there. Never null. May overlap what else is registered. Throws Error{system}.
  std::shared_ptr<void> add(std::byte* data, std::size_t bytes);

  // What holds all of data[0, bytes); nullptr if nothing does. It stays registered while the result lives.
  std::shared_ptr<const Registration> find(const std::byte* data, std::size_t bytes) const;

 private:
  struct Region {
    std::size_t bytes;
    std::shared_ptr<const Registration> registration;
  };
  using Regions = std::multimap<const std::byte*, Region>;  // by start
  struct State {
    explicit State(std::shared_ptr<Fabric> of) : fabric(std::move(of)) {}
    const std::shared_ptr<Fabric> fabric;
    std::mutex mutex;
    Regions regions;
  };
  const std::shared_ptr<State> state_;
};

}  // namespace tutti::internal::verbs
