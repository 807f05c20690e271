#include "net/handshake.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/little_endian.h"

namespace tutti::internal {
namespace {

constexpr std::uint32_t kMagic = 0x49545554;
constexpr std::size_t kHelloBytes = 56;
constexpr std::size_t kProofBytes = 32;
constexpr std::size_t kVerdictBytes = 36;
constexpr std::string_view kConnects = "connects";
constexpr std::string_view kAccepts = "accepts.";

// A hello or a challenge.
struct Greeting {
  std::uint16_t version = Handshake::kVersion;
  Handshake::Opening opening;
  Digest nonce{};

  std::vector<std::byte> encode() const {
    std::vector<std::byte> bytes(kHelloBytes);
    put_le(&bytes[0], kMagic);
    put_le(&bytes[4], version);
    put_le(&bytes[6], static_cast<std::uint16_t>(opening.purpose));
    put_le(&bytes[8], static_cast<std::uint32_t>(opening.from));
    put_le(&bytes[12], static_cast<std::uint32_t>(opening.to));
    put_le(&bytes[16], opening.communicator);
    std::copy(nonce.begin(), nonce.end(), bytes.begin() + 24);
    return bytes;
  }
  static Greeting decode(std::span<const std::byte> bytes) {
    Greeting greeting;
    greeting.version = get_le<std::uint16_t>(&bytes[4]);
    greeting.opening.purpose = static_cast<Handshake::Purpose>(get_le<std::uint16_t>(&bytes[6]));
    greeting.opening.from = static_cast<int>(get_le<std::uint32_t>(&bytes[8]));
    greeting.opening.to = static_cast<int>(get_le<std::uint32_t>(&bytes[12]));
    greeting.opening.communicator = get_le<std::uint64_t>(&bytes[16]);
    std::copy_n(bytes.begin() + 24, greeting.nonce.size(), greeting.nonce.begin());
    return greeting;
  }
};

std::string version_words(std::uint16_t theirs) {
  return "it speaks version " + std::to_string(theirs) + " of tutti's protocol, this process version " +
         std::to_string(Handshake::kVersion) + ": all ranks must run the same release";
}

std::string printable(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte b : bytes) {
    const auto c = std::to_integer<unsigned char>(b);
    text += c >= 0x20 && c < 0x7f ? static_cast<char>(c) : '.';
  }
  return text;
}

}  // namespace

Handshake Handshake::connecting(const Opening& opening, std::string key, const Digest& nonce) {
  Handshake h;
  h.opening_ = opening;
  h.key_ = std::move(key);
  h.nonce_ = nonce;
  h.hello_ = Greeting{kVersion, opening, nonce}.encode();
  h.say(h.hello_);
  h.expect(Stage::challenge);
  return h;
}

Handshake Handshake::accepting(AcceptPolicy policy, const Digest& nonce) {
  Handshake h;
  h.policy_ = std::move(policy);
  h.nonce_ = nonce;
  h.expect(Stage::hello);
  return h;
}

void Handshake::expect(Stage stage) {
  constexpr std::size_t kBytes[] = {kHelloBytes, kHelloBytes, kProofBytes, kVerdictBytes, 0};
  stage_ = stage;
  wanted_ = kBytes[static_cast<int>(stage)];
  in_.clear();
}

void Handshake::feed(std::span<const std::byte> bytes) {
  heard_ = heard_ || !bytes.empty();
  in_.insert(in_.end(), bytes.begin(), bytes.end());
  if (stage_ == Stage::hello || stage_ == Stage::challenge) check_start();
  if (failed() || wanted() > 0) return;
  switch (stage_) {
    case Stage::hello: return on_hello();
    case Stage::challenge: return on_challenge();
    case Stage::proof: return on_proof();
    case Stage::verdict: return on_verdict();
    case Stage::over: return;
  }
}

std::vector<std::byte> Handshake::take_output() { return std::exchange(out_, {}); }

// Whoever speaks something else is found out by the first byte that differs.
void Handshake::check_start() {
  std::array<std::byte, 4> magic;
  put_le(magic.data(), kMagic);
  const std::size_t known = std::min(in_.size(), magic.size());
  if (!std::equal(magic.begin(), magic.begin() + static_cast<std::ptrdiff_t>(known), in_.begin()))
    fail(Failure::not_tutti, "it does not speak tutti's protocol (it says '" +
                                 printable(std::span(in_).first(std::min<std::size_t>(in_.size(), 16))) + "')");
}

void Handshake::on_hello() {
  const Greeting theirs = Greeting::decode(in_);
  hello_ = in_;
  opening_ = theirs.opening;
  // The answer to another version holds nothing but ours.
  challenge_ =
      Greeting{kVersion, {opening_.purpose, policy_.rank, opening_.from, opening_.communicator}, nonce_}.encode();
  say(challenge_);
  if (theirs.version != kVersion) return fail(Failure::version, version_words(theirs.version));
  if (opening_.purpose < Purpose::control || opening_.purpose > Purpose::launcher)
    return fail(Failure::not_tutti, "it asks for a connection of an unknown kind");
  key_ = opening_.purpose == Purpose::data ? policy_.data_key : policy_.control_key;
  expect(Stage::proof);
}

void Handshake::on_challenge() {
  const Greeting theirs = Greeting::decode(in_);
  challenge_ = in_;
  if (theirs.version != kVersion) return fail(Failure::version, version_words(theirs.version));
  if (theirs.nonce == nonce_) return fail(Failure::wrong_secret, "it only reflects what it is told");
  if (theirs.opening.from != opening_.to)
    return fail(Failure::wrong_rank, "rank " + std::to_string(theirs.opening.from) + " answers instead of rank " +
                                         std::to_string(opening_.to) + ": is it another job's port?");
  if (theirs.opening.purpose != opening_.purpose || theirs.opening.to != opening_.from ||
      theirs.opening.communicator != opening_.communicator)
    return fail(Failure::not_tutti, "its answer is to another question");
  say(proof_of(kConnects));
  expect(Stage::verdict);
}

void Handshake::on_proof() {
  Digest theirs;
  std::copy_n(in_.begin(), theirs.size(), theirs.begin());
  const bool proven = equal_in_constant_time(theirs, proof_of(kConnects));
  const bool wanted_here = opening_.purpose == Purpose::control ? policy_.takes_control
                           : opening_.purpose == Purpose::launcher
                               ? policy_.takes_launchers
                               : policy_.takes_data && opening_.from > policy_.rank && opening_.from < policy_.size;
  const std::string who = "rank " + std::to_string(opening_.from);
  const Failure verdict = !proven                       ? Failure::wrong_secret
                          : opening_.to != policy_.rank ? Failure::wrong_rank
                          : !wanted_here                ? Failure::not_wanted
                          : !policy_.has_room           ? Failure::no_room
                                                        : Failure::none;
  pass_verdict(verdict);
  switch (verdict) {
    case Failure::none: return expect(Stage::over);
    case Failure::wrong_secret: return fail(verdict, "what calls itself " + who + " does not hold the job's secret");
    case Failure::wrong_rank: return fail(verdict, who + " looks for rank " + std::to_string(opening_.to));
    case Failure::no_room: return fail(verdict, "no descriptor is left for " + who);
    default: return fail(verdict, "no such connection from " + who + " is taken here");
  }
}

void Handshake::on_verdict() {
  const auto status = static_cast<Failure>(get_le<std::uint32_t>(&in_[0]));
  const std::string to = "rank " + std::to_string(opening_.to);
  if (status == Failure::wrong_secret) return fail(status, to + " does not accept our proof of the secret");
  if (status == Failure::no_room)
    return fail(status, to + " has no descriptor left for it: raise `ulimit -n` where " + to + " runs");
  if (status != Failure::none) return fail(Failure::not_wanted, to + " does not take this connection");
  Digest theirs;
  std::copy_n(in_.begin() + 4, theirs.size(), theirs.begin());
  if (!equal_in_constant_time(theirs, proof_of(kAccepts)))
    return fail(Failure::wrong_secret, "what answers as " + to + " does not hold the job's secret");
  expect(Stage::over);
}

void Handshake::pass_verdict(Failure failure) {
  std::vector<std::byte> bytes(kVerdictBytes);
  put_le(&bytes[0], static_cast<std::uint32_t>(failure));
  if (failure == Failure::none) {
    const Digest proof = proof_of(kAccepts);
    std::copy(proof.begin(), proof.end(), bytes.begin() + 4);
  }
  say(bytes);
}

void Handshake::fail(Failure failure, std::string reason) {
  failure_ = failure;
  reason_ = std::move(reason);
  expect(Stage::over);
}

Digest Handshake::proof_of(std::string_view label) const {
  std::vector<std::byte> said(label.size());
  std::memcpy(said.data(), label.data(), label.size());
  said.insert(said.end(), hello_.begin(), hello_.end());
  said.insert(said.end(), challenge_.begin(), challenge_.end());
  return hmac_sha256(key_, said);
}

}  // namespace tutti::internal
