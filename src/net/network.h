// Addresses and interfaces of this machine. Nothing here opens a connection.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tutti::internal {

// Where to listen or connect: IPv4, IPv6, or an abstract Unix socket of this host.
class Endpoint {
 public:
  Endpoint() = default;
  Endpoint(const sockaddr* address, socklen_t bytes);

  static constexpr std::size_t kMaxLocalName = 107;
  static Endpoint local(const std::string& name);  // abstract: without the leading NUL, at most kMaxLocalName bytes
  static std::optional<Endpoint> parse(const std::string& numeric_address, std::uint16_t port);

  const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t bytes() const { return bytes_; }
  int family() const { return storage_.ss_family; }
  bool is_local() const { return family() == AF_UNIX; }
  bool is_loopback() const;  // 127.0.0.0/8 or ::1

  std::string address() const;  // without the port: "10.0.0.7", "fe80::1%eth0", or the Unix name
  std::uint16_t port() const;   // 0 for a Unix socket
  Endpoint with_port(std::uint16_t port) const;
  std::string text() const;  // "10.0.0.7:29500", "[::1]:29500", "local socket NAME"

 private:
  sockaddr_storage storage_{};
  socklen_t bytes_ = 0;
};

// Every address that `host` (a name or an address) has, in the order in which to try them. Blocks as long as the
// system's resolver does. Throws Error{unreachable} when there is none.
std::vector<Endpoint> resolve(const std::string& host, std::uint16_t port);

struct Interface {
  std::string name;   // "eth0"
  Endpoint endpoint;  // one of its addresses, port 0
};
std::vector<Interface> interfaces();  // those that are up, one entry an address

// The address of the interface called `name_or_address`, of `family` where it has one of it, else IPv4 before IPv6.
// Throws Error{invalid_argument} that lists what there is.
Endpoint find_interface(const std::string& name_or_address, int family = AF_UNSPEC);

bool is_of_this_host(const Endpoint& endpoint);  // loopback, or an interface's address

// These make a socket for a moment, and throw Error{system} where no descriptor is left for it.
bool has_route_to(const Endpoint& endpoint);  // as far as this host knows
bool has_loopback();  // not where the interface is down, as in a network namespace that was just made
Endpoint loopback();  // 127.0.0.1, or ::1 where there is no IPv4. Throws Error{system} where there is neither
Endpoint outward();   // the address that other hosts are reached from; loopback if there is none

// "::1" of "[::1]": an address with a port behind it is written so, and many write it so without one.
std::string without_brackets(const std::string& address);

// Equal for two processes exactly when they may share memory and abstract sockets: boot id and network namespace.
std::string host_id();

}  // namespace tutti::internal
