#include "control/join.h"

#include "base/seconds.h"
#include "net/network.h"

namespace tutti::internal {
namespace {

std::string rank_name(int rank) { return "rank " + std::to_string(rank); }

constexpr std::size_t kMaxProcessorBytes = 8 << 10;  // 65536 processors
constexpr std::size_t kMaxHostIdBytes = 256;

// Whether the others can use what a rank says of itself. They would find a fault too late: nobody would be told.
bool is_well_formed(const Member& member) {
  return !member.local_name.empty() && member.local_name.size() <= Endpoint::kMaxLocalName && !member.host_id.empty() &&
         member.host_id.size() <= kMaxHostIdBytes && member.processors.size() <= kMaxProcessorBytes &&
         member.obstacles.size() <= kMaxObstacleBytes;
}

bool is_well_formed(const Table& table, int size) {
  if (static_cast<int>(table.members.size()) != size || table.announced.size() > kMaxAnnouncedBytes) return false;
  for (int r = 0; r < size; ++r)
    if (const Member& member = table.members[static_cast<std::size_t>(r)]; member.rank != r || !is_well_formed(member))
      return false;
  return true;
}

}  // namespace

std::string outside(int size) {
  return " is outside 0.." + std::to_string(size - 1) + ", the job having " + std::to_string(size) +
         (size == 1 ? " rank" : " ranks");
}

Error join_error(ErrorCode code, int rank, int peer, const std::string& message) {
  return {code, rank_name(rank) + " could not join: " + message, rank, peer, "join"};
}

Registrar::Registrar(const Introduction& own) : own_(own) { members_[0] = own.member; }

std::optional<std::string> Registrar::objection(const Introduction& theirs) const {
  const int rank = theirs.member.rank;
  const std::string who = rank_name(rank) + " (process " + std::to_string(theirs.member.pid) + ")";
  if (theirs.size != own_.size)
    return who + " says that the job has " + std::to_string(theirs.size) + " ranks, rank 0 says " +
           std::to_string(own_.size) + ": start every rank with the same world size";
  if (rank < 0 || rank >= own_.size) return who + outside(own_.size);
  if (const auto first = members_.find(rank); first != members_.end())
    return "two processes are " + rank_name(rank) + " (" + std::to_string(first->second.pid) + " and " +
           std::to_string(theirs.member.pid) + "): give every process a rank of its own";
  if (!is_well_formed(theirs.member))
    return who + " says of itself what makes no sense: do all ranks run the same release?";
  if (theirs.transport != own_.transport)
    return who + " asks for transport '" + theirs.transport + "', rank 0 for '" + own_.transport +
           "': TUTTI_TRANSPORT must be the same on every rank";
  const auto differ = [&](const std::string& what, std::int64_t their_ms, std::int64_t own_ms, const char* variable) {
    return who + " has a " + what + " of " + in_seconds(std::chrono::milliseconds(their_ms)) + ", rank 0 of " +
           in_seconds(std::chrono::milliseconds(own_ms)) + ": " + variable + " must be the same on every rank";
  };
  if (theirs.timeout_ms != own_.timeout_ms)
    return differ("timeout", theirs.timeout_ms, own_.timeout_ms, "TUTTI_TIMEOUT");
  // Else a rank would take those for lost that send less often than it expects.
  if (theirs.heartbeat_timeout_ms != own_.heartbeat_timeout_ms)
    return differ("heartbeat timeout", theirs.heartbeat_timeout_ms, own_.heartbeat_timeout_ms,
                  "TUTTI_HEARTBEAT_TIMEOUT");
  if (own_.transport == "shm" && theirs.member.host_id != own_.member.host_id)
    return who + " is on another host than rank 0, but transport 'shm' works on one host only: use 'auto' or 'tcp'";
  return std::nullopt;
}

std::optional<Refusal> Registrar::admit(const Introduction& introduction) {
  if (const auto problem = objection(introduction))
    return Refusal{ErrorCode::invalid_argument, introduction.member.rank, *problem};
  members_[introduction.member.rank] = introduction.member;
  return std::nullopt;
}

std::optional<Refusal> Registrar::other_attempt(const Introduction& theirs) const {
  const int rank = theirs.member.rank;
  if (theirs.attempt == own_.attempt) return std::nullopt;
  const std::string both = rank_name(rank) + " (process " + std::to_string(theirs.member.pid) + ") is of attempt " +
                           std::to_string(theirs.attempt) + " of the job, rank 0 of attempt " +
                           std::to_string(own_.attempt);
  if (theirs.attempt > own_.attempt)
    return Refusal{ErrorCode::unreachable, rank, both + ", which has not ended yet", true};
  return Refusal{ErrorCode::refused, rank, both + ": the job was started again without it"};
}

Refusal Registrar::gone(int rank, const std::string& why) const {
  const std::string still = complete() ? "" : " while " + missing() + " had not come yet";
  return {ErrorCode::peer_lost, rank, rank_name(rank) + " was lost while joining (" + why + ")" + still};
}

Refusal Registrar::overdue(std::chrono::milliseconds waited) const {
  return {ErrorCode::timeout, -1,
          missing() + " of " + std::to_string(own_.size) + " did not come within " + in_seconds(waited) +
              ": were they started, do they have the same master, and the same secret? (TUTTI_JOIN_TIMEOUT)"};
}

std::string Registrar::missing() const {
  constexpr int kNamed = 8;
  std::vector<int> ranks;
  for (int r = 0; r < own_.size; ++r)
    if (!members_.contains(r)) ranks.push_back(r);
  if (ranks.size() == 1) return rank_name(ranks.front());
  std::string text = "ranks ";
  const int named = std::min(static_cast<int>(ranks.size()), kNamed);
  const int others = static_cast<int>(ranks.size()) - named;
  for (int i = 0; i < named; ++i) {
    if (i > 0) text += i == named - 1 && others == 0 ? " and " : ", ";
    text += std::to_string(ranks[static_cast<std::size_t>(i)]);
  }
  return others > 0 ? text + " and " + std::to_string(others) + " others" : text;
}

std::vector<Member> Registrar::members() const {
  std::vector<Member> list;
  for (const auto& [rank, member] : members_) list.push_back(member);
  return list;
}

void Joiner::fail(ErrorCode code, int peer, const std::string& message) {
  if (!table_ && !error_) error_ = join_error(code, rank_, peer, message);
}

void Joiner::received(const ControlMessage& message) {
  admitted_ = true;
  if (const auto* table = std::get_if<Table>(&message)) {
    if (!is_well_formed(*table, size_)) return fail(ErrorCode::refused, 0, "rank 0 sent a table that makes no sense");
    if (!error_) table_ = *table;
  } else if (const auto* refusal = std::get_if<Refusal>(&message)) {
    if (refusal->try_again)
      try_again_ = refusal->message;
    else
      fail(refusal->code, refusal->rank, refusal->message);
  } else if (const auto* waiting = std::get_if<Waiting>(&message)) {
    missing_ = waiting->missing;
  }
}

void Joiner::closed(const std::string& why) {
  if (!admitted_)
    try_again_ = "it hung up before it had said anything: " + why;
  else
    fail(ErrorCode::peer_lost, 0, "rank 0 was lost while ranks were joining (" + why + ")");
}

Error Joiner::overdue(std::chrono::milliseconds waited) const {
  const std::string who = missing_.empty() ? "not every rank" : missing_;
  return join_error(ErrorCode::timeout, rank_, -1,
                    who + (missing_.empty() ? " came" : " did not come") + " within " + in_seconds(waited) +
                        ": were all ranks started with the same master and secret? (TUTTI_JOIN_TIMEOUT)");
}

}  // namespace tutti::internal
