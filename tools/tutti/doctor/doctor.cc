#include "doctor/doctor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "machine/host.h"
#include "net/network.h"
#include "topology/machine.h"
#include "topology/processors.h"
#include "transport/shm/private_memory.h"
#include "transport/verbs/layout.h"
#include "tutti/error.h"
#include "tutti/settings.h"

namespace tutti::internal::tools {
namespace {

constexpr std::size_t kUnlimited = Findings::kUnlimited;

// --- looking ---------------------------------------------------------------------------------------------------------

// In a list as the kernel writes it, "0-3,8"; 1 where there is none.
std::size_t count_in(const std::string& path) {
  std::ifstream file(path);
  std::size_t count = 0, first = 0, last = 0;
  for (char separator = ','; separator == ',' && file >> first; count += last - first + 1) {
    last = first;
    separator = static_cast<char>(file.get());
    if (separator != '-') continue;
    file >> last;
    separator = static_cast<char>(file.get());
  }
  return count == 0 ? 1 : count;
}

// Who may lock memory without a limit has this capability, as root usually does.
bool may_lock_anything() {
  constexpr unsigned kIpcLock = 14;
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    unsigned long long capabilities = 0;
    if (word == "CapEff:" && file >> std::hex >> capabilities) return (capabilities >> kIpcLock & 1) != 0;
  }
  return false;
}

std::size_t bytes_or_more(rlim_t limit) { return limit == RLIM_INFINITY ? kUnlimited : limit; }

void look_at_limits(Findings& found) {
  rlimit limit{};
  if (!may_lock_anything() && getrlimit(RLIMIT_MEMLOCK, &limit) == 0)
    found.locked_bytes = bytes_or_more(limit.rlim_cur);
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  found.open_files = bytes_or_more(limit.rlim_cur);
  found.most_open_files = bytes_or_more(limit.rlim_max);
}

std::vector<Address> addresses() {
  std::vector<Address> all;
  const internal::Endpoint outward = internal::outward();
  for (const internal::Interface& each : internal::interfaces())
    all.push_back(
        {each.name, each.endpoint.address(), !outward.is_loopback() && each.endpoint.address() == outward.address()});
  std::ranges::stable_sort(all, {}, &Address::interface);
  return all;
}

// --- in words --------------------------------------------------------------------------------------------------------

std::string words_for(const verbs::Gid& gid, bool is_ethernet) {
  const char* const kind = !is_ethernet ? "InfiniBand" : gid.is_roce_v2 ? "RoCE v2" : "RoCE v1";
  return fmt::format("{}{}{}", kind,
                     gid.is_link_local ? ", this link only"
                     : gid.is_ipv4     ? ", IPv4"
                                       : "",
                     is_ethernet && !gid.is_an_address ? ", no address of this host" : "");
}

const char* link_layer(const verbs::Port& port) { return port.is_ethernet ? "Ethernet" : "InfiniBand"; }

std::string to_text(const verbs::Port& port, const std::string& word, bool is_used) {
  std::string text = fmt::format("  {} {} port {}: {}\n", is_used ? '*' : ' ', port.device, port.number, word);
  if (!port.error_text.empty()) return text;
  text += fmt::format("      {}, {}, MTU {}, {} Gbit/s{}\n", link_layer(port), port.state, port.mtu_bytes, port.gbits,
                      port.node < 0 ? "" : fmt::format(", memory node {}", port.node));
  for (const verbs::Gid& gid : port.gids)
    text += fmt::format("      GID {:<3} {:<39} {}\n", gid.index, gid.text, words_for(gid, port.is_ethernet));
  return text;
}

std::string rdma_text(const Findings& found) {
  if (!found.has_libibverbs)
    return "RDMA: no, this tutti was built without libibverbs (libibverbs-dev; then cmake -DTUTTI_VERBS=ON)\n";
  if (found.ports.empty())
    return "RDMA: no device\n"
           "  `rdma link` lists what the kernel knows. If it lists one, its driver is missing here\n"
           "  (ibverbs-providers), or this process does not see /dev/infiniband.\n";
  std::string text = fmt::format("RDMA: {}\n", found.choice.chosen ? "yes" : "there is a device, but no port to use");
  for (std::size_t i = 0; i < found.ports.size(); ++i)
    text += to_text(found.ports[i], found.choice.words[i], found.choice.chosen == i);
  return text;
}

std::string network_text(const Findings& found) {
  std::string text = "network:\n";
  for (const Address& address : found.addresses)
    text += fmt::format("  {} {:<12} {}\n", address.is_outward ? '*' : ' ', address.interface, address.text);
  const bool is_reached = std::ranges::any_of(found.addresses, &Address::is_outward);
  return text + (is_reached ? "    (*: where other hosts reach this one, unless TUTTI_INTERFACE says another)\n"
                            : "    nothing that leads to other hosts\n");
}

std::string count_text(std::size_t count) { return count == kUnlimited ? "no limit" : fmt::format("{}", count); }

std::string limits_text(const Findings& found) {
  const std::size_t block = verbs::kBlockBytes / 1024;
  std::string text = "limits:\n    locked memory (ulimit -l): ";
  if (found.locked_bytes == kUnlimited) {
    text += fmt::format("no limit; RDMA locks {} KiB a peer, and what is registered\n", block);
  } else {
    const std::size_t peers = found.locked_bytes / verbs::kBlockBytes;
    text += fmt::format("{} KiB; RDMA locks {} KiB a peer, and what is registered: {}\n", found.locked_bytes / 1024,
                        block, peers == 0 ? "too little for one peer" : fmt::format("at most {} peers", peers));
    if (found.choice.chosen) text += "      for more, ulimit -l unlimited (memlock in /etc/security/limits.conf)\n";
  }
  return text + fmt::format("    open files (ulimit -n): {}, may be raised to {}; rank 0 needs one for every rank\n",
                            count_text(found.open_files), count_text(found.most_open_files));
}

// --- so --------------------------------------------------------------------------------------------------------------

std::string between_hosts(const Findings& found) {
  if (found.transport != "auto") return found.transport;
  return found.choice.chosen ? "verbs" : "tcp";
}
std::string on_one_host(const Findings& found) { return found.transport == "auto" ? "shm" : found.transport; }

std::string transports_text(const Findings& found) {
  std::string text =
      fmt::format("so ranks of one host use {}, ranks of several {}", on_one_host(found), between_hosts(found));
  if (found.transport != "auto") return text + fmt::format(", as TUTTI_TRANSPORT is {}\n", found.transport);
  return text + (found.choice.chosen ? ", with those that have a port too, and else tcp\n" : "\n");
}

nlohmann::ordered_json number_or_null(std::size_t value) {
  return value == kUnlimited ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(value);
}

nlohmann::ordered_json json_of(const verbs::Port& port, const std::string& word, bool is_used) {
  nlohmann::ordered_json object{{"device", port.device},
                                {"port", port.number},
                                {"used", is_used},
                                {"why", word},
                                {"link", link_layer(port)},
                                {"state", port.state},
                                {"mtu_bytes", port.mtu_bytes},
                                {"gbit_per_s", port.gbits},
                                {"node", port.node},
                                {"gids", nlohmann::json::array()}};
  for (const verbs::Gid& gid : port.gids)
    object["gids"].push_back({{"index", gid.index},
                              {"gid", gid.text},
                              {"kind", !port.is_ethernet ? "infiniband"
                                       : gid.is_roce_v2  ? "roce_v2"
                                                         : "roce_v1"},
                              {"is_an_address", gid.is_an_address}});
  return object;
}

// A process that is not its parent asks, as a rank does.
bool lets_others_read() {
  const shm::ProofWord word;
  const pid_t parent = ::getpid(), child = ::fork();
  if (child == 0) ::_exit(shm::PrivateMemory(parent, word.proof()).can_be_read() ? 0 : 1);
  int status = 0;
  return child > 0 && ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int run_doctor(bool json) {
  const Findings found = look_around();
  fmt::print("{}", json ? to_json(found) : to_text(found));
  return 0;
}

}  // namespace

Findings look_around() {
  Findings found;
  char name[256] = "";
  if (gethostname(name, sizeof name - 1) == 0) found.host = name;
  found.cores = usable_cores().size();
  found.processors = topology::allowed_processors().size();
  found.share = topology::processor_share();
  found.memory_nodes = count_in("/sys/devices/system/node/has_memory");
  found.node = topology::node_of_this_thread();
  found.reads_others = lets_others_read();
  found.reads_quickly = found.reads_others && internal::shm::reading_is_quick();
  found.addresses = addresses();
  found.has_libibverbs = verbs::has_libibverbs();
  found.ports = verbs::find_ports();
  verbs::PortRequest request;
  try {  // an environment that a job would refuse is something to report
    const Settings settings = Settings::from_env();
    found.transport = settings.transport;
    request = verbs::PortRequest::parse(settings.verbs_device, settings.verbs_gid);
  } catch (const Error& error) {
    found.error_text = error.what();
  }
  found.choice = verbs::choose(found.ports, request, found.node);
  found.gpus = find_gpus();
  look_at_limits(found);
  return found;
}

std::string to_text(const Findings& found) {
  const auto plural = [](std::size_t count, const std::string& one) {
    return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
  };
  std::string text = fmt::format("{}: {}", found.host, plural(found.cores, "core"));
  if (found.processors != found.cores) text += fmt::format(" ({} hardware threads)", found.processors);
  text += fmt::format(", {}", plural(found.memory_nodes, "memory node"));
  if (found.share > 0)
    text += fmt::format(", the time of {}", plural(static_cast<std::size_t>(found.share), "processor"));
  if (found.node >= 0) text += fmt::format(", bound near memory node {}", found.node);
  text += "\nshared memory: yes\n";
  if (found.reads_others)
    text += found.reads_quickly
                ? "    long messages of memory that is not shared: one copy\n"
                : "    long messages of memory that is not shared: two copies, which are quicker here\n";
  else
    text +=
        "    long messages of memory that is not shared: two copies, as the system lets no rank read another's\n"
        "      (process_vm_readv: kernel.yama.ptrace_scope, or a filter of system calls in a container)\n";
  text += network_text(found) + rdma_text(found) + gpus_text(found.gpus) + limits_text(found);
  if (!found.error_text.empty()) text += fmt::format("environment: {}\n", found.error_text);
  return text + transports_text(found);
}

std::string to_json(const Findings& found) {
  nlohmann::ordered_json network = nlohmann::json::array(), ports = nlohmann::json::array();
  for (const Address& address : found.addresses)
    network.push_back({{"interface", address.interface}, {"address", address.text}, {"outward", address.is_outward}});
  for (std::size_t i = 0; i < found.ports.size(); ++i)
    ports.push_back(json_of(found.ports[i], found.choice.words[i], found.choice.chosen == i));
  const nlohmann::ordered_json object{
      {"host",
       {{"name", found.host},
        {"cores", found.cores},
        {"processors", found.processors},
        {"processor_share", found.share},
        {"memory_nodes", found.memory_nodes},
        {"node", found.node}}},
      {"shared_memory", true},
      {"reads_private_memory", found.reads_others},
      {"reads_private_memory_quickly", found.reads_quickly},
      {"network", network},
      {"rdma",
       {{"libibverbs", found.has_libibverbs},
        {"gid", found.choice.chosen ? nlohmann::ordered_json(found.choice.gid) : nlohmann::ordered_json(nullptr)},
        {"ports", ports}}},
      {"gpus", gpus_json(found.gpus)},
      {"limits",
       {{"locked_bytes", number_or_null(found.locked_bytes)},
        {"block_bytes", verbs::kBlockBytes},
        {"open_files", number_or_null(found.open_files)},
        {"most_open_files", number_or_null(found.most_open_files)}}},
      {"environment", found.error_text},
      {"one_host", on_one_host(found)},
      {"between_hosts", between_hosts(found)}};
  return object.dump() + "\n";
}

Subcommand add_doctor(CLI::App& app) {
  CLI::App* parser =
      app.add_subcommand("doctor", "Say what this machine offers to tutti: cores, network, RDMA, GPUs, limits");
  auto json = std::make_shared<bool>(false);
  parser->add_flag("--json", *json, "one object; null is no limit, or none");
  return {parser, [json] { return run_doctor(*json); }};
}

}  // namespace tutti::internal::tools
