#include "control/launcher.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstring>

#include "control/env.h"
#include "net/socket.h"

namespace tutti::internal {

void tell_launcher(int rank, const std::string& what) noexcept try {
  const char* const name = launcher_name();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = name == nullptr ? 0 : std::strlen(name);
  if (length == 0 || length >= sizeof address.sun_path) return;
  std::memcpy(address.sun_path + 1, name, length);  // the byte before it stays 0: this says abstract
  const Socket socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return;
  const std::string report = "rank " + std::to_string(rank) + ": " + what;
  ::sendto(socket.fd(), report.data(), std::min(report.size(), kMaxReportBytes), MSG_DONTWAIT | MSG_NOSIGNAL,
           reinterpret_cast<const sockaddr*>(&address),
           static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length));
} catch (...) {  // no memory for the words: there is nobody else to tell
}

}  // namespace tutti::internal
