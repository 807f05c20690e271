#include "control/env.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <system_error>

#include "net/socket.h"
#include "transport/registry.h"
#include "tutti/error.h"

namespace tutti::internal {
namespace {

constexpr std::uint16_t kDefaultPort = 29417;
constexpr std::size_t kMaxSecretBytes = 4096;

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::invalid_argument, message); }

class Environment {
 public:
  explicit Environment(const Lookup& lookup) : lookup_(lookup) {}

  // A variable that is set but empty counts as not set.
  std::optional<std::string> text(const char* name) const {
    const char* value = lookup_(name);
    return value && *value ? std::optional<std::string>(value) : std::nullopt;
  }
  bool has(const char* name) const { return text(name).has_value(); }

  std::string required(const char* name, const std::string& because) const {
    const auto value = text(name);
    if (!value) refuse(because + " but " + name + " is not");
    return *value;
  }

  [[noreturn]] void bad(const char* name, const std::string& expected) const {
    refuse(std::string(name) + " is '" + text(name).value_or("") + "' but should be " + expected);
  }

  int integer(const char* name, int low, int high, const std::string& expected) const {
    const std::string value = text(name).value_or("");
    int number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc{} || end != value.data() + value.size() || number < low || number > high)
      bad(name, expected);
    return number;
  }

  void seconds(const char* name, std::chrono::milliseconds& setting) const {
    const auto value = text(name);
    if (!value) return;
    double number = 0;
    const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), number);
    if (error != std::errc{} || end != value->data() + value->size() || !(number >= 0.001 && number <= 1e9))
      bad(name, "a number of seconds from 0.001 to 1e9, like 30 or 0.5");
    setting = std::chrono::milliseconds(std::llround(number * 1000));
  }

 private:
  const Lookup& lookup_;
};

std::optional<std::uint16_t> parse_port(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < 1 || number > 65535) return std::nullopt;
  return static_cast<std::uint16_t>(number);
}

struct Launcher {
  const char* name;
  const char* rank;
  const char* size;
  bool by_either = true;  // one of the two already means it; a batch script inside a Slurm allocation may have either
};
constexpr Launcher kLaunchers[] = {{"tutti run", "TUTTI_RANK", "TUTTI_SIZE"},
                                   {"torchrun", "RANK", "WORLD_SIZE"},
                                   {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                   {"MPICH", "PMI_RANK", "PMI_SIZE"},
                                   {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", false}};

// "host:port", "[address]:port" or ":port".
void read_master(const Environment& env, Settings& settings) {
  constexpr char kForm[] = "host:port, like node1:29500, [::1]:29500 or, for this host alone, :29500";
  const std::string value = *env.text("TUTTI_MASTER");
  const std::size_t colon = value.rfind(':');
  const auto port = colon == std::string::npos ? std::nullopt : parse_port(std::string_view(value).substr(colon + 1));
  if (!port) env.bad("TUTTI_MASTER", kForm);
  const std::string host = value.substr(0, colon);
  settings.master_address = without_brackets(host);
  if (settings.master_address == host && host.find(':') != std::string::npos) env.bad("TUTTI_MASTER", kForm);
  settings.master_port = *port;
}

void read_torchrun_master(const Environment& env, Settings& settings) {
  settings.master_address = without_brackets(env.required("MASTER_ADDR", "RANK and WORLD_SIZE are set"));
  env.required("MASTER_PORT", "RANK and WORLD_SIZE are set");
  const auto agent = env.text("TORCHELASTIC_USE_AGENT_STORE");
  const bool agent_has_port = agent == "True" || agent == "true" || agent == "1";
  const int highest = agent_has_port ? 65534 : 65535;
  const int port = env.integer("MASTER_PORT", 1, highest, "a port from 1 to " + std::to_string(highest));
  settings.master_port = static_cast<std::uint16_t>(port + (agent_has_port ? 1 : 0));
}

// A port that the ranks of one job agree on without being told; FNV-1a spreads job numbers over [20000, 30000).
std::uint16_t port_of_job(const std::string& job) {
  std::uint32_t hash = 2166136261u;
  for (const char c : job) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return static_cast<std::uint16_t>(20000 + hash % 10000);
}

void read_slurm_master(const Environment& env, Settings& settings) {
  const std::string job = env.required("SLURM_JOB_ID", "SLURM_PROCID and SLURM_NTASKS are set");
  settings.master_port = port_of_job(job + "." + env.text("SLURM_STEP_ID").value_or(""));
  for (const char* name : {"SLURM_STEP_NUM_NODES", "SLURM_NNODES"})
    if (env.has(name)) {
      if (*env.text(name) == "1") return;  // all on this host
      break;
    }
  for (const char* name : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"})
    if (env.has(name)) {
      settings.master_address = first_host(*env.text(name));
      return;
    }
  settings.master_address = env.text("SLURM_LAUNCH_NODE_IPADDR").value_or("");
}

// MPI launchers say nothing of where rank 0 is: on one host the ranks meet there, on several the user must say.
void read_mpi_master(const Environment& env, const Launcher& launcher, Settings& settings) {
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"}) {
    const auto local = env.text(name);
    if (local && *local != std::to_string(settings.size))
      refuse(std::string(launcher.name) + " runs " + std::to_string(settings.size) + " ranks on several hosts (" +
             name + " is " + *local + "): set TUTTI_MASTER=host:port, host being where rank 0 runs, on every rank");
  }
  settings.master_port = kDefaultPort;
  for (const char* name : {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID"})
    if (env.has(name)) {
      settings.master_port = port_of_job(*env.text(name));
      return;
    }
}

void read_launcher(const Environment& env, Settings& settings) {
  const auto* launcher = std::find_if(std::begin(kLaunchers), std::end(kLaunchers), [&](const Launcher& l) {
    return l.by_either ? env.has(l.rank) || env.has(l.size) : env.has(l.rank) && env.has(l.size);
  });
  if (launcher == std::end(kLaunchers)) {
    settings.rank = 0;
    settings.size = 1;
    return;
  }
  env.required(launcher->rank, std::string(launcher->size) + " is set");
  env.required(launcher->size, std::string(launcher->rank) + " is set");
  settings.size = env.integer(launcher->size, 1, 65536, "a number of ranks from 1 to 65536");
  // A rank that is too high is found when joining: then every rank hears of it.
  const int highest = settings.size == 1 ? 0 : 65535;
  settings.rank = env.integer(launcher->rank, 0, highest,
                              "a rank from 0 to " + std::to_string(settings.size - 1) + ", " + launcher->size +
                                  " being " + std::to_string(settings.size));
  const std::string name = launcher->name;
  if (settings.size == 1 || env.has("TUTTI_MASTER")) return;
  if (name == "tutti run") env.required("TUTTI_MASTER", "TUTTI_RANK and TUTTI_SIZE are set");
  if (name == "torchrun") read_torchrun_master(env, settings);
  if (name == "Open MPI" || name == "MPICH") read_mpi_master(env, *launcher, settings);
  if (name == "Slurm") read_slurm_master(env, settings);
}

// Without the newline that editors put at the end. Opened without waiting: a pipe that nobody writes to must not hold
// up the start, which no timeout bounds yet.
std::string read_secret_file(const std::string& path, const std::string& named_by) {
  const Socket file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const std::string problem = "the secret's file " + path + " (" + named_by + ") ";
  if (!file) refuse(problem + "cannot be read: " + std::generic_category().message(errno));
  struct stat status {};
  if (::fstat(file.fd(), &status) != 0 || !S_ISREG(status.st_mode)) refuse(problem + "is not a regular file");
  if ((status.st_mode & 0077) != 0) refuse(problem + "may be read or written by others: chmod 600 " + path);
  if (status.st_uid != ::geteuid() && status.st_uid != 0) refuse(problem + "belongs to another user");
  std::string secret(kMaxSecretBytes + 1, '\0');
  const ssize_t bytes = ::read(file.fd(), secret.data(), secret.size());
  if (bytes < 0 || static_cast<std::size_t>(bytes) > kMaxSecretBytes)
    refuse(problem + "should hold at most 4096 bytes");
  secret.resize(static_cast<std::size_t>(bytes));
  while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
  if (secret.empty()) refuse(problem + "is empty");
  return secret;
}

std::string read_secret(const Environment& env) {
  if (const auto secret = env.text("TUTTI_SECRET")) return *secret;
  if (const auto path = env.text("TUTTI_SECRET_FILE")) return read_secret_file(*path, "TUTTI_SECRET_FILE");
  const auto home = env.text("HOME");
  const std::string path = home.value_or("") + "/.config/tutti/secret";
  struct stat status {};
  return home && ::stat(path.c_str(), &status) == 0 ? read_secret_file(path, "the default") : "";
}

LogLevel read_log_level(const Environment& env) {
  const std::string level = env.text("TUTTI_DEBUG").value_or("warn");
  if (level == "warn") return LogLevel::warn;
  if (level == "info") return LogLevel::info;
  if (level == "trace") return LogLevel::trace;
  env.bad("TUTTI_DEBUG", "warn, info or trace");
}

Progress read_progress(const Environment& env) {
  const std::string who = env.text("TUTTI_PROGRESS").value_or("caller");
  if (who == "caller") return Progress::caller;
  if (who == "thread") return Progress::thread;
  env.bad("TUTTI_PROGRESS", "caller or thread");
}

// Of those that a program may be sent without being in trouble.
int read_dump_signal(const Environment& env) {
  const std::string name = env.text("TUTTI_DUMP_SIGNAL").value_or("");
  if (name.empty()) return 0;
  struct Named {
    const char* name;
    int signal;
  };
  for (const Named& one :
       {Named{"USR1", SIGUSR1}, Named{"USR2", SIGUSR2}, Named{"HUP", SIGHUP}, Named{"QUIT", SIGQUIT}})
    if (name == one.name || name == std::string("SIG") + one.name) return one.signal;
  env.bad("TUTTI_DUMP_SIGNAL", "USR1, USR2, HUP or QUIT");
}

void read_ports(const Environment& env, Settings& settings) {
  const auto value = env.text("TUTTI_PORTS");
  if (!value) return;
  const std::size_t dash = value->find('-');
  const auto first = parse_port(std::string_view(*value).substr(0, dash));
  const auto last = dash == std::string::npos ? first : parse_port(std::string_view(*value).substr(dash + 1));
  if (!first || !last || *first > *last) env.bad("TUTTI_PORTS", "first-last, ports from 1 to 65535, like 29600-29699");
  settings.port_first = *first;
  settings.port_last = *last;
}

}  // namespace

const char* launcher_name() noexcept { return std::getenv("TUTTI_LAUNCHER"); }

std::string first_host(const std::string& node_list) {
  std::string host;
  for (std::size_t i = 0; i < node_list.size() && node_list[i] != ','; ++i) {
    if (node_list[i] != '[') {
      host += node_list[i];
      continue;
    }
    const std::size_t close = node_list.find(']', i);
    const std::size_t end = std::min(node_list.find_first_of(",-]", i), node_list.size());
    host += node_list.substr(i + 1, end - i - 1);
    if (close == std::string::npos) break;
    i = close;
  }
  return host;
}

Settings within_clocks(Settings settings) {
  for (auto* const time : {&settings.timeout, &settings.connect_timeout, &settings.heartbeat_timeout,
                           &settings.join_timeout, &settings.warn_after})
    *time = std::clamp<std::chrono::milliseconds>(*time, std::chrono::milliseconds(0), kLongestWait);
  settings.heartbeat_timeout = std::max(settings.heartbeat_timeout, kShortestHeartbeatTimeout);
  return settings;
}

Settings settings_from(const Lookup& lookup) {
  const Environment env(lookup);
  Settings settings;
  read_launcher(env, settings);
  if (env.has("TUTTI_ATTEMPT"))
    settings.attempt = env.integer("TUTTI_ATTEMPT", 0, std::numeric_limits<int>::max(), "a whole number, from 0");
  if (env.has("TUTTI_MASTER")) read_master(env, settings);
  if (settings.size > 1) settings.secret = read_secret(env);
  env.seconds("TUTTI_TIMEOUT", settings.timeout);
  env.seconds("TUTTI_CONNECT_TIMEOUT", settings.connect_timeout);
  env.seconds("TUTTI_HEARTBEAT_TIMEOUT", settings.heartbeat_timeout);
  env.seconds("TUTTI_JOIN_TIMEOUT", settings.join_timeout);
  settings.interface = env.text("TUTTI_INTERFACE").value_or("");
  read_ports(env, settings);
  settings.transport = env.text("TUTTI_TRANSPORT").value_or("auto");
  settings.table = env.text("TUTTI_TABLE").value_or("");
  if (!is_transport(settings.transport)) env.bad("TUTTI_TRANSPORT", transport_names());
  settings.log_level = read_log_level(env);
  settings.progress = read_progress(env);
  settings.dump_dir = env.text("TUTTI_DUMP_DIR").value_or("");
  settings.dump_signal = read_dump_signal(env);
  settings.verbs_device = env.text("TUTTI_VERBS_DEVICE").value_or("");
  if (env.has("TUTTI_VERBS_GID"))
    settings.verbs_gid = env.integer("TUTTI_VERBS_GID", 0, 65535, "the index of a GID, from 0");
  return settings;
}

Settings tuning_from(const Lookup& lookup) {
  Settings settings = settings_from([&lookup](const char* name) -> const char* {
    const std::string_view which(name);
    const bool tunes = which.starts_with("TUTTI") && which != "TUTTI_RANK" && which != "TUTTI_SIZE" &&
                       which != "TUTTI_ATTEMPT" && which != "TUTTI_MASTER" && which != "TUTTI_SECRET" &&
                       which != "TUTTI_SECRET_FILE";
    return tunes ? lookup(name) : nullptr;
  });
  settings.rank = settings.size = -1;
  return settings;
}

Settings tuning_from_env() {
  return tuning_from([](const char* name) { return std::getenv(name); });
}

bool is_timeout_of_env(std::chrono::milliseconds timeout) noexcept {
  try {
    const Lookup lookup = [](const char* name) { return std::getenv(name); };
    const Environment env(lookup);
    std::chrono::milliseconds said{0};
    env.seconds("TUTTI_TIMEOUT", said);
    return said == timeout;
  } catch (const std::exception&) {  // it says no time
    return false;
  }
}

}  // namespace tutti::internal

namespace tutti {

Settings Settings::from_env() {
  return internal::settings_from([](const char* name) { return std::getenv(name); });
}

}  // namespace tutti
