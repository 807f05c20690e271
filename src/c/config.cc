#include "c/config.h"

#include <algorithm>

#include "tutti/error.h"

namespace tutti::internal::c_api {
namespace {

constexpr std::size_t kMaxValueBytes = 4096;  // tutti_store_t

void set_text(std::string& setting, const char* value) {
  if (value != nullptr) setting = value;
}

void set_time(const std::string& name, std::chrono::milliseconds& setting, std::int64_t value) {
  if (value < 0)
    throw Error(ErrorCode::invalid_argument, name + " is " + std::to_string(value) + " but should be positive");
  if (value > 0) setting = std::chrono::milliseconds(value);
}

int in_range(const std::string& name, int value, int low, int high) {
  if (value < low || value > high)
    throw Error(ErrorCode::invalid_argument, name + " is " + std::to_string(value) + " but should be from " +
                                                 std::to_string(low) + " to " + std::to_string(high));
  return value;
}

void set_ports(const std::string& name, Settings& settings, const tutti_config_t& config) {
  if (config.port_first == 0 && config.port_last == 0) return;
  settings.port_first = static_cast<std::uint16_t>(in_range(name + "port_first", config.port_first, 1, 65535));
  settings.port_last =
      static_cast<std::uint16_t>(in_range(name + "port_last", config.port_last, config.port_first, 65535));
}

}  // namespace

Config read_config(const char* function, const tutti_config_t* config, const Settings& others) {
  Config read{.settings = others};
  if (config == nullptr) return read;
  const std::string name = std::string(function) + ": config.";
  if (config->size != sizeof *config)
    throw Error(ErrorCode::invalid_argument,
                name + "size is " + std::to_string(config->size) + " but should be " + std::to_string(sizeof *config) +
                    ": begin with TUTTI_CONFIG_INITIALIZER, and compile with the header of the library that is linked");
  Settings& settings = read.settings;
  set_text(settings.transport, config->transport);
  set_time(name + "timeout_ms", settings.timeout, config->timeout_ms);
  set_time(name + "connect_timeout_ms", settings.connect_timeout, config->connect_timeout_ms);
  set_time(name + "heartbeat_timeout_ms", settings.heartbeat_timeout, config->heartbeat_timeout_ms);
  set_time(name + "join_timeout_ms", settings.join_timeout, config->join_timeout_ms);
  set_time(name + "warn_after_ms", settings.warn_after, config->warn_after_ms);
  set_text(settings.interface, config->interface_name);
  set_ports(name, settings, *config);
  set_text(settings.verbs_device, config->verbs_device);
  if (config->verbs_gid >= 0) settings.verbs_gid = config->verbs_gid;
  set_text(settings.table, config->table);
  read.order = static_cast<Order>(in_range(name + "order", config->order, TUTTI_ORDER_CANONICAL, TUTTI_ORDER_ANY));
  if (config->log_level >= 0)
    settings.log_level = static_cast<LogLevel>(in_range(name + "log_level", config->log_level, 0, TUTTI_LOG_TRACE));
  if (config->progress >= 0)
    settings.progress = static_cast<Progress>(in_range(name + "progress", config->progress, 0, TUTTI_PROGRESS_THREAD));
  if (config->log != nullptr)
    settings.log_sink = [log = config->log, user = config->log_user](const LogLine& line) {
      log(user, static_cast<int>(line.level), line.rank, std::string(line.text).c_str());
    };
  return read;
}

static_assert(static_cast<int>(Order::canonical) == TUTTI_ORDER_CANONICAL);
static_assert(static_cast<int>(Order::any) == TUTTI_ORDER_ANY);
static_assert(static_cast<int>(Progress::caller) == TUTTI_PROGRESS_CALLER);
static_assert(static_cast<int>(Progress::thread) == TUTTI_PROGRESS_THREAD);
static_assert(static_cast<int>(LogLevel::warn) == TUTTI_LOG_WARN);
static_assert(static_cast<int>(LogLevel::trace) == TUTTI_LOG_TRACE);

// Only what went wrong on rank 0 may be longer, and is cut.
void CallbackStore::set(const std::string& key, const std::string& value) {
  if (functions_.set(functions_.user, key.c_str(), value.data(), std::min(value.size(), kMaxValueBytes)) != 0)
    throw Error(ErrorCode::system, "the caller's store has failed to set " + key);
}

std::string CallbackStore::get(const std::string& key, std::chrono::milliseconds timeout) {
  std::string value(kMaxValueBytes, '\0');
  std::size_t bytes = 0;
  if (functions_.get(functions_.user, key.c_str(), value.data(), value.size(), &bytes, timeout.count()) != 0)
    throw Error(ErrorCode::timeout, "it has not got " + key);
  if (bytes > value.size())
    throw Error(ErrorCode::invalid_argument,
                "it says that " + key + " has " + std::to_string(bytes) + " bytes, more than fit");
  value.resize(bytes);
  return value;
}

std::optional<std::int64_t> CallbackStore::add(const std::string& key, std::int64_t delta) {
  if (functions_.add == nullptr) return std::nullopt;
  std::int64_t sum = 0;
  if (functions_.add(functions_.user, key.c_str(), delta, &sum) != 0)
    throw Error(ErrorCode::system, "the caller's store has failed to add to " + key);
  return sum;
}

}  // namespace tutti::internal::c_api
