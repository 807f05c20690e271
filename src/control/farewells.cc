#include "control/farewells.h"

#include <algorithm>
#include <iterator>

#include "types/call.h"

namespace tutti::internal {
namespace {

// All zero: the rank had made none of that number. Nothing: that is not known.
std::optional<Tag> call_at(const Farewell& farewell, std::uint32_t number) {
  if (number > farewell.account.calls) return Tag{};
  const auto behind = std::ranges::upper_bound(farewell.rows, number, {}, &CallRow::first);
  if (behind == farewell.rows.begin()) return std::nullopt;
  return Call::numbered(std::prev(behind)->kind, number);
}

}  // namespace

std::pair<Tag, Tag> first_difference(const Farewell& one, const Farewell& other) {
  std::vector<std::uint32_t> numbers{std::min(one.account.calls, other.account.calls) + 1};
  for (const Farewell* const each : {&one, &other})
    for (const CallRow& row : each->rows) numbers.push_back(row.first);
  std::ranges::sort(numbers);
  for (const std::uint32_t number : numbers) {
    const std::optional<Tag> mine = call_at(one, number), theirs = call_at(other, number);
    if (mine && theirs && *mine != *theirs) return {*mine, *theirs};
  }
  return {one.account.last, other.account.last};
}

std::optional<Farewell> Farewells::compare(const Farewell& farewell) {
  if (farewell.again)
    for (const Heard& one : heard_)
      if (one.communicator == farewell.communicator && one.rank == farewell.rank) return one.verdict;
  const auto verdict = farewell.peer < 0 ? compare_whole(farewell) : compare_lane(farewell);
  heard_.push_front({farewell.communicator, farewell.rank, verdict});
  if (heard_.size() > kRemembered) heard_.pop_back();
  return verdict;
}

std::optional<Farewell> Farewells::compare_whole(const Farewell& farewell) {
  const auto entry = entries_.try_emplace(farewell.communicator, Entry{farewell}).first;
  Farewell& first = entry->second.first;
  std::optional<Farewell> other;
  if (!farewell.goes_on) {
    first.done.push_back({farewell.rank, farewell.account});
    other = take_lanes_to(farewell.rank, farewell.communicator);
  }
  if (first.account != farewell.account) other = first;
  if (++entry->second.left >= farewell.ranks) entries_.erase(entry);
  return other;
}

// What others have sent to the rank, and it never made the lane: any of these.
std::optional<Farewell> Farewells::take_lanes_to(int rank, std::uint64_t whole) {
  std::optional<Farewell> any;
  auto lane = lanes_.lower_bound({whole, rank, 0});
  while (lane != lanes_.end() && lane->second.whole == whole && lane->second.peer == rank) {
    if (lane->second.account.calls > 0) any = lane->second;
    lane = lanes_.erase(lane);
  }
  return any;
}

std::optional<Farewell> Farewells::compare_lane(const Farewell& farewell) {
  if (const auto other = lanes_.extract({farewell.whole, farewell.rank, farewell.communicator})) {
    const Farewell& first = other.mapped();
    return first.account == farewell.account ? std::nullopt : std::optional(first);
  }
  if (account_of(farewell.peer, farewell.whole) == nullptr) {
    lanes_.insert_or_assign({farewell.whole, farewell.peer, farewell.communicator}, farewell);
    return std::nullopt;
  }
  if (farewell.account.calls == 0) return std::nullopt;
  Farewell never_made = farewell;
  never_made.rank = farewell.peer;
  never_made.account = {};
  return never_made;
}

// Nothing: the rank has not left the communicator, or goes on with lanes of it.
const CallAccount* Farewells::account_of(int rank, std::uint64_t communicator) const {
  const auto entry = entries_.find(communicator);
  if (entry == entries_.end()) return nullptr;
  const auto& done = entry->second.first.done;
  const auto found = std::ranges::find(done, rank, &Farewell::Departed::rank);
  return found == done.end() ? nullptr : &found->account;
}

std::optional<Notice> Farewells::answer_to(const Probe& probe) const {
  static constexpr CallAccount kNeverMade;
  const auto lane = lanes_.find({probe.whole, probe.from, probe.communicator});
  const CallAccount* account = lane != lanes_.end() ? &lane->second.account : account_of(probe.to, probe.communicator);
  if (account == nullptr && account_of(probe.to, probe.whole) != nullptr) account = &kNeverMade;
  if (account == nullptr) return std::nullopt;
  Notice answer;
  answer.kind = Notice::Kind::answer;
  answer.peer = probe.to;
  answer.communicator = probe.communicator;
  answer.sequence = probe.sequence;
  answer.has_left = true;
  answer.entered = static_cast<std::int32_t>(account->calls - probe.sequence) >= 0;
  if (account->calls == probe.sequence) answer.call = account->last;
  const auto entry = entries_.find(probe.communicator);
  if (answer.entered && entry != entries_.end() && entry->second.first.account == *account)
    answer.call = call_at(entry->second.first, probe.sequence).value_or(answer.call);
  answer.last = account->last;
  return answer;
}

std::vector<Farewell> Farewells::first() const {
  std::vector<Farewell> list;
  for (const auto& [communicator, entry] : entries_) list.push_back(entry.first);
  for (const auto& [key, lane] : lanes_) list.push_back(lane);
  return list;
}

}  // namespace tutti::internal
