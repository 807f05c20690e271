// Which port of which RDMA device this rank uses, and why not the others. Choosing is a function of what was found, so
// it is tested without a device.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tutti::internal::verbs {

struct Gid {
  int index;
  std::string text;    // as an IPv6 address; IPv4 as "::ffff:10.0.0.1"
  bool is_roce_v2;     // else RoCE v1, or an InfiniBand GID
  bool is_link_local;  // fe80::/10
  bool is_ipv4;
  // That an interface here has. RoCE's first GIDs are made of the MAC and need not be; those of a container's host are
  // not.
  bool is_an_address = true;
};

struct Port {
  std::string device;       // "mlx5_0"
  int number = 1;           // from 1
  bool is_ethernet = true;  // RoCE; else InfiniBand
  bool is_active = false;
  std::string state;  // the driver's word: "PORT_ACTIVE"
  int mtu_bytes = 0;  // of the port now
  double gbits = 0;   // per second, as the port says
  int node = -1;      // the memory node that the device is on; -1: not known
  std::vector<Gid> gids;
  std::string error_text;  // why nothing more is known of it; empty if all is
};

// What is asked for: empty and negative mean any.
struct PortRequest {
  std::string device;
  int port = -1;
  int gid = -1;
  static PortRequest parse(const std::string& device_and_port, int gid);  // "mlx5_0" or "mlx5_0:1"; throws Error
};

struct Choice {
  std::optional<std::size_t> chosen;  // index of the port
  int gid = 0;                        // its GID's index
  std::vector<std::string> words;     // for each port: why it is used, or why not
};
// node: where this rank runs, or -1. Active ports near it come first, then faster ones, then as they were found.
Choice choose(const std::vector<Port>& ports, const PortRequest& request, int node);

// Why nothing was chosen, and what to do, for a person.
std::string why_none(const std::vector<Port>& ports, const Choice& choice, const PortRequest& request);

// What there is on this machine; nothing in a build without libibverbs.
std::vector<Port> find_ports();
bool has_libibverbs();  // this build

}  // namespace tutti::internal::verbs
