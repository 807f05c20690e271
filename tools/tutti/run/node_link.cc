#include "run/node_link.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/descriptor.h"

namespace tutti::internal::tools {

NodeLink::NodeLink(Socket socket, Handshake handshake, bool connecting)
    : socket_(std::move(socket)), handshake_(std::move(handshake)), connecting_(connecting) {
  if (!connecting_) shake({});
}

pollfd NodeLink::wanted() const {
  if (connecting_) return {socket_.fd(), POLLOUT, 0};
  return {socket_.fd(), static_cast<short>(out_.empty() ? POLLIN : POLLIN | POLLOUT), 0};
}

void NodeLink::serve(short events) {
  if (!is_open() || events == 0) return;
  if (connecting_) {
    if (const int error = error_of(socket_.fd())) return close(system_words(error));
    connecting_ = false;
    return shake({});
  }
  if ((events & ~POLLOUT) != 0) read();
  if (is_open()) write();
}

void NodeLink::send(const NodeMessage& message) {
  if (!is_open() || finishing_) return;
  const auto bytes = encode(message);
  out_.insert(out_.end(), bytes.begin(), bytes.end());
  write();
}

std::optional<NodeMessage> NodeLink::next() {
  while (auto message = frames_.next())
    if (message->kind != NodeMessage::Kind::ping || !message->words.empty()) return message;
  if (frames_.broken()) close("it sent what is no message of a launcher");
  return std::nullopt;
}

void NodeLink::finish() {
  finishing_ = true;
  if (is_open()) write();
}

void NodeLink::close(const std::string& why) {
  if (!is_open()) return;
  why_ = why;
  socket_ = Socket();
}

// One piece a turn, so that no connection keeps the guardian from the others.
void NodeLink::read() {
  std::array<std::byte, 16384> piece;
  const std::size_t wanted = handshake_.done() ? piece.size() : std::min(handshake_.wanted(), piece.size());
  const ssize_t bytes = ::recv(socket_.fd(), piece.data(), wanted, 0);
  if (bytes == 0) return close("the connection was closed");
  if (bytes < 0 && errno != EAGAIN && errno != EINTR) return close(system_words(errno));
  if (bytes > 0) took(std::span(piece).first(static_cast<std::size_t>(bytes)));
}

void NodeLink::took(std::span<const std::byte> bytes) {
  heard_ = Clock::now();
  if (handshake_.done())
    frames_.feed(bytes);
  else
    shake(bytes);
}

void NodeLink::shake(std::span<const std::byte> bytes) {
  if (!bytes.empty()) handshake_.feed(bytes);
  const auto answer = handshake_.take_output();
  out_.insert(out_.end(), answer.begin(), answer.end());
  write();
  if (handshake_.failed()) close(handshake_.reason());
}

// A failure to write is left for read() to find: what the other end said before it went must still be heard.
void NodeLink::write() {
  std::size_t written = 0;
  while (written < out_.size()) {
    const ssize_t bytes = ::send(socket_.fd(), out_.data() + written, out_.size() - written, MSG_NOSIGNAL);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0 && errno != EAGAIN) written = out_.size();
    if (bytes < 0) break;
    written += static_cast<std::size_t>(bytes);
  }
  out_.erase(out_.begin(), out_.begin() + static_cast<std::ptrdiff_t>(written));
  if (out_.empty() && finishing_) ::shutdown(socket_.fd(), SHUT_WR);
}

}  // namespace tutti::internal::tools
