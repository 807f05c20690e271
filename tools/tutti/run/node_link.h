// One connection between two launchers: it is made, shakes hands, and carries messages. Nothing here blocks.
#pragma once

#include <poll.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "net/handshake.h"
#include "net/socket.h"
#include "run/node_message.h"

namespace tutti::internal::tools {

class NodeLink {
 public:
  using Clock = std::chrono::steady_clock;

  // connecting: the socket turns writable once it is known whether it is connected.
  NodeLink(Socket socket, Handshake handshake, bool connecting);

  // What to wait for; then hand what poll() said of it to serve(), which reads and writes what there is.
  pollfd wanted() const;
  void serve(short events);

  void send(const NodeMessage& message);  // once the hands are shaken
  std::optional<NodeMessage> next();      // of what has come; pings without words are left out
  void finish();                          // nothing follows what was sent: the other end closes
  void close(const std::string& why);

  bool is_open() const { return static_cast<bool>(socket_); }
  const std::string& why_closed() const { return why_; }
  const Handshake& handshake() const { return handshake_; }
  Clock::time_point heard() const { return heard_; }  // when something came last
  void forgive(Clock::duration silence) { heard_ = std::min(Clock::now(), heard_ + silence); }

 private:
  void read();
  void write();
  void took(std::span<const std::byte> bytes);
  void shake(std::span<const std::byte> bytes);

  Socket socket_;
  Handshake handshake_;
  bool connecting_;
  bool finishing_ = false;
  NodeFrames frames_;
  std::vector<std::byte> out_;
  std::string why_;
  Clock::time_point heard_ = Clock::now();
};

}  // namespace tutti::internal::tools
