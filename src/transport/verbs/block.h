// A channel's registered block (layout.h), and where the peer's lies.
#pragma once

#include <cstddef>
#include <memory>

#include "transport/verbs/fabric.h"
#include "transport/verbs/layout.h"

namespace tutti::internal::verbs {

class Block {
 public:
  explicit Block(Fabric& fabric);
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  std::byte* data() const { return data_; }
  std::uint32_t local_key() const { return registration_->local_key(); }
  Place place() const { return {reinterpret_cast<std::uintptr_t>(data_), registration_->remote_key()}; }

 private:
  std::byte* data_;
  std::unique_ptr<Registration> registration_;
};

}  // namespace tutti::internal::verbs
