// What the launchers of a job over several hosts say to each other (nodes.h), and how it is written.
//
// A frame is 4 bytes length of what follows, 1 byte kind, then the members of NodeMessage in the order of declaration.
// Integers are little-endian, 4 bytes; text is 4 bytes length and bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tutti::internal::tools {

struct NodeMessage {
  enum class Kind : std::uint8_t {
    ping,  // both ways, at least every second. words: for the user, or nothing
    // launcher -> node 0
    arrival,  // first. words: the options that all launchers must have alike
    failed,   // a rank of this attempt. words: which, and how
    ended,    // every rank of this attempt on this host. status: 0, or what the launcher would exit with
    stop,     // the user ends the job. words: how
    // node 0 -> launcher
    start,  // the ranks of this attempt
    end,    // the ranks of this attempt, for it has failed. words: where and how. status: not 0 if the job ends with it
    over,   // the job is. status: what the launcher is to exit with. words: for the user, or nothing
  };
  Kind kind = Kind::ping;
  std::int32_t attempt = 0;  // from 0: how often the job was started again before
  std::int32_t status = 0;
  std::string words;
};

std::vector<std::byte> encode(const NodeMessage& message);

// Cuts a stream into messages. What is not well formed, or too long, breaks it for good.
class NodeFrames {
 public:
  void feed(std::span<const std::byte> bytes) { buffer_.insert(buffer_.end(), bytes.begin(), bytes.end()); }
  std::optional<NodeMessage> next();
  bool broken() const { return broken_; }

 private:
  std::vector<std::byte> buffer_;
  bool broken_ = false;
};

}  // namespace tutti::internal::tools
