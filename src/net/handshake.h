// The versioned mutual challenge that opens every connection: control or data, TCP or local. Sans-I/O: bytes in, bytes
// out.
//
// Both ends prove that they hold the same key, over everything that was said, without showing it. Four messages of
// fixed size, little-endian; C is who connects, A who accepts:
//
//   1. C -> A  hello, 56 bytes        2. A -> C  challenge, 56 bytes: the same form
//      offset size field
//           0    4 magic         0x49545554, the bytes "TUTI"
//           4    2 version       9; the first 56 bytes keep this form in every version
//           6    2 purpose       1 control, 2 data, 3 launcher
//           8    4 from          rank of the sender; its node between launchers, as below
//          12    4 to            rank of the receiver that is meant
//          16    8 communicator  that a data connection is for; else 0
//          24   32 nonce         random
//   3. C -> A  proof, 32 bytes:   HMAC-SHA256(key, "connects" hello challenge)
//   4. A -> C  verdict, 36 bytes: status (4; 0 accepted, else a Handshake::Failure), then
//                                 HMAC-SHA256(key, "accepts." hello challenge), or zeros when not accepted
//
// The labels keep a proof from being reflected, the nonces from being replayed. Who connects proves first, so a
// stranger who probes a port learns nothing to guess the key from. A wrong first byte ends it at once: whoever speaks
// something else is not waited for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "net/secret.h"

namespace tutti::internal {

class Handshake {
 public:
  static constexpr std::uint16_t kVersion = 9;

  enum class Purpose : std::uint16_t { control = 1, data = 2, launcher = 3 };
  enum class Failure : std::uint32_t {
    none = 0,
    not_tutti,     // these bytes are not this protocol's
    version,       // another version of it
    wrong_secret,  // the other end does not hold the key
    wrong_rank,    // not the rank that was meant
    not_wanted,    // such a connection is not taken here
    no_room,       // it would be, but the process has no descriptor left for it
  };

  // What a connection is for, as its connecting end says.
  struct Opening {
    Purpose purpose = Purpose::control;
    int from = 0;
    int to = 0;
    std::uint64_t communicator = 0;
  };

  // What an accepting end lets in: control connections from anyone who holds the key where it is the hub, data
  // connections from the ranks above its own, and other launchers where it is the launcher of node 0.
  struct AcceptPolicy {
    int rank = 0;
    int size = 1;
    std::string control_key;
    std::string data_key;
    bool takes_control = false;
    bool takes_data = false;
    bool takes_launchers = false;
    bool has_room = true;
  };

  // `nonce` must be random (random_digest) except in tests.
  static Handshake connecting(const Opening& opening, std::string key, const Digest& nonce);
  static Handshake accepting(AcceptPolicy policy, const Digest& nonce);

  // The bytes of the other end that this end still waits for; never read more, what follows belongs to whoever uses the
  // connection next. 0: it is over.
  std::size_t wanted() const { return wanted_ - in_.size(); }
  void feed(std::span<const std::byte> bytes);  // at most wanted()

  // Bytes to be sent, each handed out once; also after a failure, when they tell the other end why.
  std::vector<std::byte> take_output();

  bool awaits_verdict() const { return stage_ == Stage::verdict; }  // this end has said its proof
  bool done() const { return wanted_ == 0 && failure_ == Failure::none; }
  bool failed() const { return failure_ != Failure::none; }
  Failure failure() const { return failure_; }
  const std::string& reason() const { return reason_; }  // of the failure, for a person
  bool heard() const { return heard_; }                  // whether the other end said anything at all
  const Opening& opening() const { return opening_; }    // for an accepting end: valid once a hello has come

 private:
  enum class Stage : std::uint8_t { hello, challenge, proof, verdict, over };
  Handshake() = default;
  void expect(Stage stage);
  void on_hello();
  void on_challenge();
  void on_proof();
  void on_verdict();
  void check_start();
  void fail(Failure failure, std::string reason);
  void say(std::span<const std::byte> bytes) { out_.insert(out_.end(), bytes.begin(), bytes.end()); }
  void pass_verdict(Failure failure);
  Digest proof_of(std::string_view label) const;

  Stage stage_ = Stage::hello;
  std::size_t wanted_ = 0;
  bool heard_ = false;
  Opening opening_;
  AcceptPolicy policy_;
  std::string key_;
  Digest nonce_{};
  std::vector<std::byte> in_, out_, hello_, challenge_;
  Failure failure_ = Failure::none;
  std::string reason_;
};

}  // namespace tutti::internal
