#include "c/unique_id.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "base/little_endian.h"
#include "base/process_mutex.h"
#include "net/secret.h"

namespace tutti::internal::c_api {
namespace {

constexpr char kMagic[] = {'T', 'U', 'I', 'D'};
constexpr char kVersion = 1;
constexpr std::size_t kAtVersion = 4, kAtKind = 5, kAtPort = 6, kAtNonce = 8, kAtSecret = 24, kAtAddress = 56,
                      kAtChecksum = 120;
constexpr std::size_t kNonceBytes = 16, kSecretBytes = 32, kAddressBytes = 64;

std::uint64_t checksum_of(const tutti_unique_id& id) {
  std::uint64_t hash = 14695981039346656037u;
  for (std::size_t i = 0; i < kAtChecksum; ++i)
    hash = (hash ^ static_cast<unsigned char>(id.bytes[i])) * 1099511628211u;
  return hash;
}

std::byte* at(tutti_unique_id& id, std::size_t offset) { return reinterpret_cast<std::byte*>(id.bytes) + offset; }
const std::byte* at(const tutti_unique_id& id, std::size_t offset) {
  return reinterpret_cast<const std::byte*>(id.bytes) + offset;
}

std::string nonce_of(const tutti_unique_id& id) { return {id.bytes + kAtNonce, kNonceBytes}; }

// The places of this process where no rank 0 has come yet, and the ranks that have used an id. Thread-safe.
class Places {
 public:
  static Places& here() {
    static Places& places = *new Places;  // never destroyed: a thread may join while the process exits
    return places;
  }

  void add(const std::string& nonce, Socket listener) {
    const std::lock_guard lock(process_mutex(ProcessWide::unique_ids));
    listeners_[nonce] = std::move(listener);
  }

  Socket use(const std::string& nonce, int rank) {
    const std::lock_guard lock(process_mutex(ProcessWide::unique_ids));
    if (!used_.emplace(nonce, rank).second)
      throw Error(ErrorCode::unsupported, "rank " + std::to_string(rank) +
                                              " has joined with this unique id before: an id serves one communicator; "
                                              "make another with tutti_get_unique_id()");
    if (rank != 0) return {};
    const auto found = listeners_.find(nonce);
    if (found == listeners_.end()) {
      used_.erase({nonce, rank});
      throw Error(ErrorCode::unsupported,
                  "rank 0 must join in the process that made the unique id, which listens for the other ranks: call "
                  "tutti_get_unique_id() there, and send the id to the others");
    }
    Socket listener = std::move(found->second);
    listeners_.erase(found);
    return listener;
  }

 private:
  std::map<std::string, Socket> listeners_;     // by nonce
  std::set<std::pair<std::string, int>> used_;  // nonce and rank
};

// Where other hosts reach this one; a local socket where there is no network at all.
Socket listen_for(const Settings& settings, const std::string& local_name) {
  if (!settings.interface.empty())
    return listen_in(find_interface(settings.interface), settings.port_first, settings.port_last);
  const Endpoint outside = has_loopback() ? outward() : Endpoint::local(local_name);
  if (outside.is_local()) return listen_at(outside);
  return listen_in(outside, settings.port_first, settings.port_last);
}

}  // namespace

tutti_unique_id make_unique_id(const Settings& settings) {
  tutti_unique_id id{};
  const Digest nonce = random_digest(), secret = random_digest();
  std::memcpy(id.bytes, kMagic, sizeof kMagic);
  id.bytes[kAtVersion] = kVersion;
  std::memcpy(id.bytes + kAtNonce, nonce.data(), kNonceBytes);
  std::memcpy(id.bytes + kAtSecret, secret.data(), kSecretBytes);
  Socket listener = listen_for(settings, "tutti-id-" + to_hex(std::span(nonce).first(kNonceBytes)));
  const Endpoint place = own_end(listener.fd());
  const std::string address = place.address();
  if (address.size() >= kAddressBytes)
    throw Error(ErrorCode::unsupported, "the address " + address + " is too long for a unique id; set TUTTI_INTERFACE");
  id.bytes[kAtKind] = place.is_local() ? 1 : 0;
  put_le(at(id, kAtPort), place.port());
  std::memcpy(id.bytes + kAtAddress, address.data(), address.size());
  put_le(at(id, kAtChecksum), checksum_of(id));
  Places::here().add(nonce_of(id), std::move(listener));
  return id;
}

Appointment appointment_of(const tutti_unique_id& id, int rank) {
  const auto refuse = [](const std::string& why) { throw Error(ErrorCode::invalid_argument, "the unique id " + why); };
  if (std::all_of(std::begin(id.bytes), std::end(id.bytes), [](char byte) { return byte == 0; }))
    refuse("has only zeros: has it been sent to this rank?");
  if (std::memcmp(id.bytes, kMagic, sizeof kMagic) != 0)
    refuse("was not made by tutti_get_unique_id(): its first bytes are not \"TUID\"");
  if (id.bytes[kAtVersion] != kVersion)
    refuse("has version " + std::to_string(id.bytes[kAtVersion]) + ", this library reads version " +
           std::to_string(kVersion) + ": link all ranks with the same release");
  if (get_le<std::uint64_t>(at(id, kAtChecksum)) != checksum_of(id))
    refuse("was damaged on its way: its checksum is wrong");
  const std::string address(id.bytes + kAtAddress, ::strnlen(id.bytes + kAtAddress, kAddressBytes));
  const auto port = get_le<std::uint16_t>(at(id, kAtPort));
  const auto place = id.bytes[kAtKind] == 1 ? std::optional(Endpoint::local(address)) : Endpoint::parse(address, port);
  if (!place) refuse("has no address that this host understands: " + address);
  return {*place, to_hex({at(id, kAtSecret), kSecretBytes}), Places::here().use(nonce_of(id), rank)};
}

}  // namespace tutti::internal::c_api
