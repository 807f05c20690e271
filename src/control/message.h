// What the control connections carry once the handshake is over, and how it is written.
//
// A frame is 4 bytes length of what follows, 1 byte kind (the alternative's index in ControlMessage), then the members
// in the order of declaration. Integers are little-endian of 1 to 8 bytes; text is 4 bytes length and bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "control/control.h"
#include "net/secret.h"

namespace tutti::internal {

// member -> rank 0, first: who it is, and the settings that must agree.
struct Introduction {
  Member member;
  std::int32_t size = 0;
  std::int64_t timeout_ms = 0, heartbeat_timeout_ms = 0;
  std::string transport;
  std::int32_t attempt = 0;
};

// rank 0 -> members: everyone has joined.
struct Table {
  Digest salt{};  // the key of data connections is HMAC(secret, salt): another for every job
  std::vector<Member> members;
  std::string announced;  // by rank 0
};

// rank 0 -> members: there will be no job. Member -> rank 0: this one cannot be of it.
struct Refusal {
  ErrorCode code = ErrorCode::refused;
  std::int32_t rank = -1;  // the offender, if there is one
  std::string message;
  bool try_again = false;  // this rank 0 is of an earlier attempt, and another will listen here
};

struct Waiting {  // rank 0 -> members: when it has taken one in, and every second of joining
  std::string missing;
};

// Hub -> member and back. All events but the last ones can be forgotten that way.
struct Ping {
  std::uint32_t known = 0;  // of the hub: the events that all members know; of a member: those that it knows
  bool is_open = false;     // of the hub: it may have decided something
};
struct Goodbye {};

struct Probe {  // member -> hub -> member
  std::int32_t from = -1, to = -1;
  std::uint64_t communicator = 0, whole = 0;
  std::uint32_t sequence = 0;
};

struct Answer {  // member -> hub -> member
  std::int32_t to = -1;
  Notice notice;
};

// member -> hub: a Probe from it to each of these ranks. Once for each call: who asks later hears of the verdict.
struct Survey {
  std::uint64_t communicator = 0, whole = 0;
  std::uint32_t sequence = 0;
  std::vector<std::int32_t> ranks = {};
};

// member -> the next hub, behind the events that it knows: it is one of its members now.
struct Enlistment {
  std::uint32_t events = 0;  // how many it knows
};

// member -> hub: the kernel of their host says that the process of this rank has ended.
struct Death {
  std::int32_t rank = -1;
};

// The next hub -> a rank that has not enlisted. A rank that waits for an earlier hub answers with a Ping.
struct Summons {
  bool is_sure = false;  // that all ranks before it are dead or have left
};

// The answer to a ping of a hub from which this rank has turned to a later one.
struct Desertion {};

// A rank -> the one that it has enlisted with, which has not spoken as the hub: it wants to go back to an earlier hub.
// The answer, if it does not become the hub now: it has forgotten the enlistment. A hub that is not open yet -> its
// members: it goes back to an earlier hub itself, and has forgotten them. A rank -> a hub that takes it for a member,
// and is not open: it is not with it. That has no answer.
struct Withdrawal {
  std::int32_t to = -1;  // that earlier hub; in the last case -1
};

// member -> hub: it waits no longer, and takes its vote back. Who has not voted?
struct Recall {
  std::uint64_t communicator = 0;
  Vote::On on = Vote::On::going_on;
  std::uint32_t number = 0;
};

// Any rank -> any other, while it hears nothing of the hub.
struct LifeSign {
  bool is_question = false;  // then one is sent back
};

// Notice: poisoned: member -> hub; events: hub -> members, and a member -> the next hub; expelled: any rank -> one that
// was given up; agreed, differed: hub -> who said Farewell; absent: hub -> who sent a Recall. Vote: member -> hub.
// Farewell: member -> hub; hub -> members, when the hub leaves: what the next one is to compare with.
using ControlMessage =
    std::variant<Introduction, Table, Refusal, Waiting, Ping, Goodbye, Probe, Answer, Notice, Farewell, Enlistment,
                 Death, Summons, Survey, Vote, Desertion, Withdrawal, Recall, LifeSign>;

std::vector<std::byte> encode(const ControlMessage& message);

// Cuts a stream into messages. What is not well formed, or longer than the limit, breaks it for good.
class FrameReader {
 public:
  static constexpr std::size_t kFromMember = 512 << 10;  // a vote of 65536 ranks fits
  static constexpr std::size_t kFromHub = 64 << 20;      // a table of 65536 members fits

  explicit FrameReader(std::size_t limit_bytes) : limit_bytes_(limit_bytes) {}
  void feed(std::span<const std::byte> bytes);
  std::optional<ControlMessage> next();
  bool broken() const { return broken_; }

 private:
  std::size_t limit_bytes_;
  std::vector<std::byte> buffer_;
  std::size_t taken_ = 0;
  bool broken_ = false;
};

// At most this many bytes of a poison's message travel.
inline constexpr std::size_t kMaxPoisonText = 4096;

}  // namespace tutti::internal
