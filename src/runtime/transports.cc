#include "runtime/transports.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>

#include "transport/registry.h"

namespace tutti::internal {
namespace {

constexpr std::size_t kMaxReason = 1000;  // bytes of why a rank cannot use a kind

// Obstacles travel as lines of text: the kind, ": ", the reason.
std::string line_of(std::string_view kind, std::string reason, std::size_t max_bytes) {
  reason.resize(std::min({reason.size(), kMaxReason, max_bytes - std::min(max_bytes, kind.size() + 3)}));
  std::ranges::replace(reason, '\n', ' ');
  return std::string(kind) + ": " + reason + "\n";
}

std::string reason_in(std::string_view text, std::string_view kind) {
  const std::string start = std::string(kind) + ": ";
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.starts_with(start)) return std::string(line.substr(start.size()));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return {};
}

}  // namespace

Transports::Transports(const Settings& settings, const Log& log, Sleeper& sleeper, std::unique_ptr<Connector> only)
    : settings_(settings), log_(log) {
  if (only != nullptr) {
    kinds_.push_back({.connector = std::move(only), .is_candidate = true});
    return;
  }
  for (const TransportKind& kind : transport_kinds())
    kinds_.push_back({.connector = kind.make({settings_, log_, sleeper}),
                      .is_candidate = !is_forced() || settings_.transport == kind.name});
}

std::string Transports::probe() {
  std::string obstacles;
  if (settings_.size == 1) return obstacles;
  for (const Kind& kind : kinds_) {
    if (!kind.is_candidate) continue;
    const std::string reason = kind.connector->probe(is_forced(), settings_.size);
    if (!reason.empty()) obstacles += line_of(kind.connector->name(), reason, kMaxObstacleBytes / kinds_.size());
  }
  return obstacles;
}

// --- choosing -------------------------------------------------------------------------------------------------------

bool Transports::Kind::reaches(int a, int b, const JobRanks& ranks) const {
  return is_candidate && obstacles[a].empty() && obstacles[b].empty() && connector->distance(a, b, ranks).empty();
}

void Transports::read_obstacles(const std::vector<Member>& members) {
  for (Kind& kind : kinds_) {
    kind.obstacles.resize(members.size());
    for (const Member& member : members)
      kind.obstacles[member.rank] = reason_in(member.obstacles, kind.connector->name());
  }
}

// The settings name this kind.
void Transports::demand(const Kind& kind, const JobRanks& ranks) const {
  const std::string name = "transport " + std::string(kind.connector->name()) + ": ";
  for (int rank = 0; rank < ranks.size(); ++rank) {
    if (!kind.obstacles[rank].empty())
      throw Error(ErrorCode::system, name + "rank " + std::to_string(rank) + " cannot use it: " + kind.obstacles[rank],
                  ranks.own, rank);
    if (const std::string distance = kind.connector->distance(ranks.own, rank, ranks); !distance.empty())
      throw Error(ErrorCode::unsupported, name + distance);
  }
}

// A user who asked for a kind is told that the job goes without it.
void Transports::warn_of_unused(const Kind& kind, const JobRanks& ranks) const {
  const std::string requested_by = kind.connector->requested_by();
  if (requested_by.empty() || kind.obstacles[ranks.own].empty() || ranks.neighbours() == ranks.size()) return;
  log_.warn("goes without " + std::string(kind.connector->name()) + ", though " + requested_by + ": " +
            kind.obstacles[ranks.own]);
}

void Transports::begin(const std::vector<Member>& members, bool share_processors) {
  read_obstacles(members);
  JobRanks ranks{.own = settings_.rank, .host = {}, .share_processors = share_processors};
  std::map<std::string, int> numbers;
  for (const Member& member : members)
    ranks.host.push_back(numbers.try_emplace(member.host_id, static_cast<int>(numbers.size())).first->second);

  for (const Kind& kind : kinds_) {
    if (!kind.is_candidate) continue;
    if (is_forced()) {
      demand(kind, ranks);
    } else {
      warn_of_unused(kind, ranks);
    }
  }
  to_.resize(members.size());
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const bool is_own = rank == ranks.own;  // memory that others could reach is made for a rank alone too
    const auto kind = std::ranges::find_if(kinds_, [&](const Kind& k) {
      return (!is_own || k.connector->shares_memory()) && k.reaches(ranks.own, rank, ranks);
    });
    if (kind == kinds_.end()) {
      if (is_own) continue;
      throw Error(ErrorCode::unsupported, "no transport reaches rank " + std::to_string(rank));
    }
    if (kind->transport == nullptr) kind->transport = &kind->connector->begin(ranks);
    if (!is_own) to_[rank] = &*kind;
  }
  for (const Kind& kind : kinds_)
    if (kind.transport == nullptr) kind.connector->drop();
  // What matters of a host from here on is that its ranks share memory: one that cannot is a host of its own.
  hosts_ = ranks.host;
  for (int rank = 0; rank < ranks.size(); ++rank)
    if (std::ranges::none_of(kinds_, [&](const Kind& k) {
          return k.is_candidate && k.connector->shares_memory() && k.obstacles[rank].empty();
        }))
      hosts_[rank] = ranks.size() + rank;
}

std::vector<Transport*> Transports::used() const {
  std::vector<Transport*> all;
  for (const Kind& kind : kinds_)
    if (kind.transport != nullptr) all.push_back(kind.transport);
  return all;
}

bool Transports::wakes_sleepers() const {
  for (std::size_t rank = 0; rank < to_.size(); ++rank)
    if (static_cast<int>(rank) != settings_.rank && !to_[rank]->connector->wakes_sleepers()) return false;
  return true;
}

std::string Transports::describe() const {
  std::map<std::string_view, int> ranks;  // by the transport to them
  std::string missing;                    // a better one
  const auto own = static_cast<std::size_t>(settings_.rank);
  for (std::size_t rank = 0; rank < to_.size(); ++rank) {
    if (rank == own) continue;
    ++ranks[to_[rank]->connector->name()];
    for (const Kind* kind = kinds_.data(); kind != to_[rank] && missing.empty(); ++kind) {
      if (!kind->is_candidate || (kind->obstacles[own].empty() && kind->obstacles[rank].empty())) continue;
      const std::size_t whose = kind->obstacles[own].empty() ? rank : own;
      missing = "; no " + std::string(kind->connector->name()) + ", as of rank " + std::to_string(whose) + ": " +
                kind->obstacles[whose];
    }
  }
  std::string text = "transports:";
  for (const auto& [name, count] : ranks) text.append(" ").append(name).append(" to ").append(std::to_string(count));
  return text + (ranks.empty() ? " none" : "") + " (TUTTI_TRANSPORT: " + settings_.transport + missing + ")";
}

// --- channels and memory --------------------------------------------------------------------------------------------

std::unique_ptr<Channel> Transports::open(Control& control, std::uint64_t communicator, int peer) {
  const Kind& kind = *to_[peer];
  auto channel = kind.transport->channel(communicator, settings_.rank, peer);
  const std::optional<Route> route = kind.connector->route();
  if (peer > settings_.rank || !route) return channel;
  if (route->per_communicator) {
    control.connect(peer, route->path, communicator);
  } else if (asked_.insert(peer).second) {
    control.connect(peer, route->path, 0);
  }
  return channel;
}

void Transports::on_connection(int peer, Path path, std::uint64_t communicator, int fd, const Error* error) {
  Connector& connector = *to_[peer]->connector;
  const std::optional<Route> route = connector.route();
  const bool is_expected = route && route->path == path;
  if (error != nullptr) {
    if (error->code == ErrorCode::system) {
      const std::lock_guard lock(mutex_);
      lacks_.insert_or_assign(peer, error->what());
    }
    if (is_expected) connector.fail(communicator, peer, error->what());
  } else if (is_expected) {
    connector.attach(communicator, peer, fd);
  } else if (fd >= 0) {
    ::close(fd);
  }
}

std::string Transports::lack_for(int peer) const {
  const std::lock_guard lock(mutex_);
  const auto found = lacks_.find(peer);
  return found == lacks_.end() ? "" : found->second;
}

std::shared_ptr<SymmetricMemory> Transports::allocate(std::size_t bytes) const {
  const std::size_t pages = SymmetricMemory::whole_pages(bytes);
  std::shared_ptr<std::byte> reachable;
  for (Transport* transport : used())
    if (reachable == nullptr) reachable = transport->allocate(pages);
  auto memory = std::make_shared<SymmetricMemory>(std::move(reachable), bytes);
  try {
    memory->keep(register_memory(memory->data(), bytes));
  } catch (const Error&) {
    if (is_forced()) throw;  // else it is sent by copies
  }
  return memory;
}

std::shared_ptr<void> Transports::adopt(std::byte* data, std::size_t bytes) const {
  if (bytes == 0) return nullptr;
  // A device that knows memory by its pages would go on with those that adopting replaces.
  if (auto registered = register_memory(data, bytes)) return registered;
  for (const Kind* kind : to_)
    if (kind != nullptr)
      if (auto adopted = kind->transport->adopt(data, bytes)) return adopted;
  return nullptr;
}

bool Transports::shares(const std::byte* data, std::size_t bytes) const {
  return std::ranges::all_of(
      kinds_, [&](const Kind& kind) { return kind.transport == nullptr || kind.transport->shares(data, bytes); });
}

void Transports::keep_memory() {
  for (Transport* transport : used()) transport->keep_memory();
}

std::shared_ptr<void> Transports::register_memory(std::byte* data, std::size_t bytes) const {
  std::vector<std::shared_ptr<void>> registered;
  if (bytes == 0) return nullptr;
  for (Transport* transport : used())
    if (auto one = transport->register_memory(data, bytes)) registered.push_back(std::move(one));
  if (registered.empty()) return nullptr;
  if (registered.size() == 1) return registered.front();
  return std::make_shared<std::vector<std::shared_ptr<void>>>(std::move(registered));
}

void Transports::look_at_peers() {
  for (Transport* transport : used()) transport->look_at_peers();
}

}  // namespace tutti::internal
