// What a C program says of how to join, as the library takes it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "tutti/settings.h"
#include "tutti/store.h"
#include "tutti/tutti.h"

namespace tutti::internal::c_api {

struct Config {
  Settings settings;
  Order order = Order::canonical;
};

// What `config` sets, else what `others` says. Null: nothing is set. `function` is named in errors.
Config read_config(const char* function, const tutti_config_t* config, const Settings& others);

// The caller's functions. They must not throw.
class CallbackStore final : public Store {
 public:
  explicit CallbackStore(const tutti_store_t& functions) : functions_(functions) {}
  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, std::chrono::milliseconds timeout) override;
  std::optional<std::int64_t> add(const std::string& key, std::int64_t delta) override;

 private:
  tutti_store_t functions_;
};

}  // namespace tutti::internal::c_api
