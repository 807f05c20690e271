#include "net/network.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>

#include "base/descriptor.h"
#include "tutti/error.h"

namespace tutti::internal {
namespace {

std::vector<Endpoint> numeric_or_named(const std::string& host, std::uint16_t port, int flags, int& status) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* first = nullptr;
  status = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &first);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(first, &freeaddrinfo);
  std::vector<Endpoint> found;
  if (status != 0) return found;
  for (const addrinfo* entry = first; entry; entry = entry->ai_next)
    found.emplace_back(entry->ai_addr, entry->ai_addrlen);
  return found;
}

bool same_address(const Endpoint& a, const Endpoint& b) {
  return a.family() == b.family() && a.address() == b.address();
}

// The address from which this host would send to `there`; nothing is sent.
std::optional<Endpoint> source_towards(const Endpoint& there) {
  const int fd = above_standard(::socket(there.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (fd < 0 && is_out_of_descriptors(errno))
    throw Error(ErrorCode::system, "cannot look for the addresses of this host: " + system_words(errno));
  if (fd < 0) return std::nullopt;
  sockaddr_storage storage{};
  socklen_t bytes = sizeof storage;
  const bool known = ::connect(fd, there.data(), there.bytes()) == 0 &&
                     ::getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &bytes) == 0;
  ::close(fd);
  if (!known) return std::nullopt;
  return Endpoint(reinterpret_cast<sockaddr*>(&storage), bytes).with_port(0);
}

std::optional<Endpoint> find_loopback() {
  for (const char* address : {"127.0.0.1", "::1"}) {
    const auto found = Endpoint::parse(address, 0);
    const auto source = source_towards(found->with_port(9));
    if (source && source->is_loopback()) return found;
  }
  return std::nullopt;
}

}  // namespace

Endpoint::Endpoint(const sockaddr* address, socklen_t bytes) : bytes_(bytes) {
  std::memcpy(&storage_, address, std::min<std::size_t>(bytes, sizeof storage_));
}

Endpoint Endpoint::local(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  static_assert(kMaxLocalName == sizeof address.sun_path - 1);
  if (name.size() > kMaxLocalName)
    throw Error(ErrorCode::invalid_argument, "the local socket name " + name + " is too long");
  std::memcpy(address.sun_path + 1, name.data(), name.size());  // sun_path[0] == 0: abstract
  return {reinterpret_cast<sockaddr*>(&address),
          static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())};
}

std::optional<Endpoint> Endpoint::parse(const std::string& numeric_address, std::uint16_t port) {
  int status = 0;
  const auto found = numeric_or_named(numeric_address, port, AI_NUMERICHOST, status);
  if (numeric_address.empty() || found.empty()) return std::nullopt;
  return found.front();
}

bool Endpoint::is_loopback() const {
  if (family() == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(storage_);
    return (ntohl(v4.sin_addr.s_addr) >> 24) == 127;
  }
  if (family() == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage_);
    return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
  }
  return false;
}

std::string Endpoint::address() const {
  if (is_local()) {
    const auto& local = reinterpret_cast<const sockaddr_un&>(storage_);
    const std::size_t before_name = offsetof(sockaddr_un, sun_path) + 1;
    return bytes_ > before_name ? std::string(local.sun_path + 1, bytes_ - before_name) : "";
  }
  char host[NI_MAXHOST] = "";
  if (bytes_ > 0) getnameinfo(data(), bytes_, host, sizeof host, nullptr, 0, NI_NUMERICHOST);
  return host;
}

std::uint16_t Endpoint::port() const {
  if (family() == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(storage_).sin_port);
  if (family() == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(storage_).sin6_port);
  return 0;
}

Endpoint Endpoint::with_port(std::uint16_t port) const {
  Endpoint result = *this;
  if (family() == AF_INET) reinterpret_cast<sockaddr_in&>(result.storage_).sin_port = htons(port);
  if (family() == AF_INET6) reinterpret_cast<sockaddr_in6&>(result.storage_).sin6_port = htons(port);
  return result;
}

std::string Endpoint::text() const {
  if (is_local()) return "local socket " + address();
  std::string result = address();
  if (family() == AF_INET6) result.insert(0, 1, '[').push_back(']');
  return result.append(1, ':').append(std::to_string(port()));
}

std::vector<Endpoint> resolve(const std::string& host, std::uint16_t port) {
  int status = 0;
  auto found = numeric_or_named(host, port, 0, status);
  if (found.empty())
    throw Error(ErrorCode::unreachable, "the host name '" + host + "' does not resolve (" + gai_strerror(status) +
                                            "): check MASTER_ADDR or TUTTI_MASTER");
  return found;
}

std::vector<Interface> interfaces() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(first, &freeifaddrs);
  std::vector<Interface> found;
  for (const ifaddrs* entry = first; entry; entry = entry->ifa_next) {
    if (!entry->ifa_addr || !(entry->ifa_flags & IFF_UP)) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family == AF_INET) found.push_back({entry->ifa_name, Endpoint(entry->ifa_addr, sizeof(sockaddr_in))});
    if (family == AF_INET6) found.push_back({entry->ifa_name, Endpoint(entry->ifa_addr, sizeof(sockaddr_in6))});
  }
  return found;
}

Endpoint find_interface(const std::string& name_or_address, int family) {
  const auto all = interfaces();
  const auto given = Endpoint::parse(name_or_address, 0);
  const Interface* best = nullptr;
  const auto rank_of = [&](const Interface& i) {
    return (i.endpoint.family() == family ? 2 : 0) + (i.endpoint.family() == AF_INET ? 1 : 0);
  };
  std::string there_is;
  for (const Interface& i : all) {
    there_is += (there_is.empty() ? "" : ", ") + i.name + " (" + i.endpoint.address() + ")";
    const bool matches = given ? same_address(*given, i.endpoint) : i.name == name_or_address;
    if (matches && (!best || rank_of(i) > rank_of(*best))) best = &i;
  }
  if (!best)
    throw Error(ErrorCode::invalid_argument, "this host has no network interface '" + name_or_address +
                                                 "' that is up; TUTTI_INTERFACE may be one of " + there_is);
  return best->endpoint;
}

bool is_of_this_host(const Endpoint& endpoint) {
  if (endpoint.is_local() || endpoint.is_loopback()) return true;
  const auto all = interfaces();
  return std::any_of(all.begin(), all.end(), [&](const Interface& i) { return same_address(i.endpoint, endpoint); });
}

bool has_route_to(const Endpoint& endpoint) { return endpoint.is_local() || source_towards(endpoint.with_port(9)); }

bool has_loopback() { return find_loopback().has_value(); }

Endpoint loopback() {
  if (const auto found = find_loopback()) return *found;
  throw Error(ErrorCode::system, "the loopback interface of this host is down: `ip link set lo up`");
}

std::string without_brackets(const std::string& address) {
  const bool bracketed = address.size() >= 2 && address.front() == '[' && address.back() == ']';
  return bracketed ? address.substr(1, address.size() - 2) : address;
}

Endpoint outward() {
  // Documentation addresses (RFC 5737, RFC 3849): the route to them is the default route.
  for (const char* somewhere : {"192.0.2.1", "2001:db8::1"})
    if (const auto source = source_towards(*Endpoint::parse(somewhere, 9))) return *source;
  for (const Interface& i : interfaces())
    if (!i.endpoint.is_loopback() && i.endpoint.family() == AF_INET) return i.endpoint;
  return loopback();
}

std::string host_id() {
  std::string boot_id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot_id;
  struct stat net_namespace {};
  if (::stat("/proc/self/ns/net", &net_namespace) != 0) net_namespace.st_ino = 0;
  return boot_id + "/" + std::to_string(net_namespace.st_ino);
}

}  // namespace tutti::internal
