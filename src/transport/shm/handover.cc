#include "transport/shm/handover.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "base/descriptor.h"
#include "transport/transport.h"
#include "tutti/error.h"

namespace tutti::internal::shm {
namespace {

constexpr std::uint64_t kMagic = 0x34304d4853495455;  // "UTISHM04"

struct Greeting {
  std::uint64_t magic;
  std::uint64_t segment;  // Segment::number(), for a thread of the same process
  Proof proof;
};

struct Descriptors {
  std::array<int, 2> fd{-1, -1};
  ~Descriptors() {
    for (const int each : fd)
      if (each >= 0) ::close(each);
  }
  int take(int i) { return std::exchange(fd[i], -1); }

  // All that came with a message, also where there are fewer than there should be: they are this process's now.
  void take_from(const msghdr& message) {
    const cmsghdr* rights = CMSG_FIRSTHDR(&message);
    if (rights == nullptr || rights->cmsg_level != SOL_SOCKET || rights->cmsg_type != SCM_RIGHTS) return;
    const std::size_t bytes = std::min<std::size_t>(rights->cmsg_len - CMSG_LEN(0), sizeof fd);
    std::memcpy(fd.data(), CMSG_DATA(rights), bytes);
    for (int& each : fd) each = above_standard(each);
  }
};

[[noreturn]] void refuse(const std::string& why) {
  throw Error(ErrorCode::system, "shared memory: hand-over with a peer: " + why);
}

// Its number in this process's namespace; 0 if it has none there.
pid_t process_behind(int fd) {
  ucred who{};
  socklen_t length = sizeof who;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length) < 0) refuse(std::strerror(errno));
  return who.pid;
}

msghdr message_of(iovec& bytes, char* control, std::size_t control_bytes) {
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = control_bytes;
  return message;
}

}  // namespace

bool give(int fd, const Segment& own, int bell) {
  Greeting greeting{kMagic, own.number(), own.proof()};
  const std::array descriptors{own.fd(), bell};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptors)] = {};
  iovec bytes{&greeting, sizeof greeting};
  const msghdr message = message_of(bytes, control, sizeof control);
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof descriptors);
  std::memcpy(CMSG_DATA(rights), descriptors.data(), sizeof descriptors);
  return ::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof greeting;
}

std::shared_ptr<Peer> take(int fd, int peer) {
  Greeting greeting{};
  Descriptors descriptors;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptors.fd)] = {};
  iovec bytes{&greeting, sizeof greeting};
  msghdr message = message_of(bytes, control, sizeof control);
  const ssize_t got = ::recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return nullptr;
  if (got <= 0)
    throw ChannelClosed{peer, got == 0 ? "it closed during the hand-over of its memory" : std::strerror(errno)};
  descriptors.take_from(message);
  if ((message.msg_flags & MSG_CTRUNC) != 0)
    refuse("no room for its descriptors (too many open files? raise `ulimit -n`)");
  if (got != sizeof greeting || greeting.magic != kMagic || descriptors.fd[0] < 0 || descriptors.fd[1] < 0)
    refuse("it sent something else");

  auto who = std::make_shared<Peer>();
  const pid_t process = process_behind(fd);
  if (process == ::getpid()) who->segment = Segment::find(greeting.segment);
  if (who->segment == nullptr) who->segment = Segment::map(descriptors.take(0));
  who->bell = descriptors.take(1);
  who->memory = PrivateMemory(process, greeting.proof);
  return who;
}

}  // namespace tutti::internal::shm
