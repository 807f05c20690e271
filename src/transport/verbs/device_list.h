// The RDMA devices of this machine.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <span>

namespace tutti::internal::verbs {

class DeviceList {
 public:
  DeviceList() : list_(ibv_get_device_list(&count_)) {}
  ~DeviceList() {
    if (list_ != nullptr) ibv_free_device_list(list_);
  }
  DeviceList(const DeviceList&) = delete;
  DeviceList& operator=(const DeviceList&) = delete;
  std::span<ibv_device*> all() const& { return {list_, static_cast<std::size_t>(list_ == nullptr ? 0 : count_)}; }

 private:
  int count_ = 0;
  ibv_device** list_;
};

}  // namespace tutti::internal::verbs
