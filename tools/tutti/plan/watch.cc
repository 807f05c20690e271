#include "plan/watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "schedule/claimed_messages.h"
#include "schedule/text.h"
#include "types/collective.h"

namespace tutti::internal::tools {
namespace {

constexpr std::size_t kLineWidth = 110;
constexpr std::size_t kTransferWidth = 28;

using Leaves = std::set<int>;

struct Message {
  int from, to;
  Region region;             // of the sender; the first row
  std::vector<Leaves> rows;  // what each holds
  std::vector<std::uint32_t> slices;
  int round;           // in which it travels: the receiver has it in the next
  bool taken = false;  // the sender's memory has been given back

  Leaves leaves() const {
    Leaves all;
    for (const Leaves& row : rows) all.insert(row.begin(), row.end());
    return all;
  }
};

struct Posted {
  int peer;
  std::size_t message;  // number on the channel
  Step receive;
  bool filled = false;
};

struct Rank {
  std::size_t next_step = 0;
  std::map<std::tuple<Space, int, int>, std::pair<int, Leaves>> memory;  // scratch: row, chunk; output: slice, chunk
  std::map<int, ClaimedMessages> claimed;                                // by peer
  std::map<int, std::vector<Posted>> posted;
  Leaves heard;  // barrier: whose entering it knows of
};

// "0-3,6"
std::string to_text(const Leaves& leaves) {
  std::string text;
  for (auto leaf = leaves.begin(); leaf != leaves.end();) {
    auto last = leaf;
    while (std::next(last) != leaves.end() && *std::next(last) == *last + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", *leaf);
    if (*last != *leaf) text += fmt::format("-{}", *last);
    leaf = std::next(last);
  }
  return text.empty() ? "." : text;
}

// As a line, without the blanks at its end.
std::string trimmed(std::string text) {
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

class Lockstep {
 public:
  Lockstep(std::span<const Schedule> schedules, const Layout& layout, const Goal& goal)
      : schedules_(schedules), layout_(layout), goal_(goal), ranks_(schedules.size()) {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) ranks_[rank].heard = {static_cast<int>(rank)};
  }

  std::string run() {
    std::string text = "at the start\n" + holdings();
    advance();
    while (!travelling().empty()) {
      text += fmt::format("\nround {}\n{}", round_ + 1, transfers());
      ++round_;
      advance();
      text += holdings();
    }
    return text;
  }

 private:
  // Runs all ranks as far as the messages of earlier rounds take them.
  void advance() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
        moved |= fill_posted(rank);
        const auto& steps = schedules_[rank].steps;
        Rank& state = ranks_[rank];
        while (state.next_step < steps.size() && try_step(rank, steps[state.next_step])) {
          ++state.next_step;
          moved = true;
        }
      }
    }
  }

  Message* arrived(int from, int to, std::size_t number) {
    auto& channel = channels_[{from, to}];
    return number < channel.size() && channel[number].round < round_ ? &channel[number] : nullptr;
  }

  void take(int rank, Message& message) {
    message.taken = true;
    ranks_[rank].heard.merge(message.leaves());
  }

  bool fill_posted(int rank) {
    bool moved = false;
    for (auto& [peer, list] : ranks_[rank].posted) {
      for (Posted& posted : list) {
        Message* message = posted.filled ? nullptr : arrived(peer, rank, posted.message);
        if (message == nullptr) continue;
        for (std::size_t i = 0; i < message->rows.size(); ++i)
          store(rank, schedules_[rank].row_of(posted.receive, i), message->rows[i]);
        take(rank, *message);
        posted.filled = moved = true;
      }
    }
    return moved;
  }

  bool try_step(int rank, const Step& step) {
    Rank& state = ranks_[rank];
    switch (step.kind) {
      case StepKind::send: {
        auto& channel = channels_[{rank, step.peer}];
        const int round = channel.empty() ? round_ : std::max(round_, channel.back().round + 1);
        Message& message =
            channel.emplace_back(Message{rank, step.peer, step.region, {}, slices_of(schedules_[rank], step), round});
        for (std::size_t i = 0; i < Schedule::rows_of(step); ++i)
          message.rows.push_back(read(rank, schedules_[rank].row_of(step, i)));
        return true;
      }
      case StepKind::receive:
        state.claimed[step.peer].claim(step.message);
        state.posted[step.peer].push_back({step.peer, step.message, step});
        return true;
      case StepKind::reduce: return try_reduce(rank, step);
      case StepKind::wait_send: {
        const auto& channel = channels_[{rank, step.peer}];
        return std::all_of(channel.begin(), channel.begin() + step.message, [](const Message& m) { return m.taken; });
      }
      case StepKind::wait_receive: {
        const auto& list = state.posted[step.peer];
        return std::all_of(list.begin(), list.begin() + step.message, [](const Posted& p) { return p.filled; });
      }
    }
    return false;
  }

  bool try_reduce(int rank, const Step& step) {
    auto claimed = ranks_[rank].claimed;
    std::vector<Message*> messages;
    Leaves result;
    for (const Source& source : schedules_[rank].sources_of(step)) {
      if (source.peer == kLocal) {
        result.merge(read(rank, source.region));
      } else if (Message* message = arrived(source.peer, rank, claimed[source.peer].claim_first())) {
        messages.push_back(message);
        result.merge(message->leaves());
      } else {
        return false;
      }
    }
    for (Message* message : messages) take(rank, *message);
    ranks_[rank].claimed = claimed;
    store(rank, step.region, result);
    return true;
  }

  static std::tuple<Space, int, int> place_of(const Region& region) {
    return {region.space, is_scratch(region.space) ? region.row : static_cast<int>(region.slice), region.chunk};
  }
  void store(int rank, const Region& region, const Leaves& leaves) {
    ranks_[rank].memory[place_of(region)] = {region.slice, leaves};
  }
  Leaves read(int rank, const Region& region) const {
    if (!traits_of(goal_.collective).has_bytes()) return ranks_[rank].heard;
    if (region.space == Space::input) return {layout_.first_leaf[rank] + region.row};
    const auto found = ranks_[rank].memory.find(place_of(region));
    return found == ranks_[rank].memory.end() ? Leaves{} : found->second.second;
  }

  // The most that a rank has of a chunk, wherever it lies.
  Leaves held(int rank, int slice, int chunk) const {
    if (!traits_of(goal_.collective).has_bytes()) return ranks_[rank].heard;
    Leaves most;
    const bool in_input = Distribution(goal_.collective, layout_.ranks(), goal_.root).gives(rank, slice);
    for (int row = 0; in_input && row < layout_.leaves_of(rank); ++row) most.insert(layout_.first_leaf[rank] + row);
    for (const auto& [place, content] : ranks_[rank].memory) {
      const auto& [where, leaves] = content;
      if (where == slice && std::get<2>(place) == chunk && leaves.size() > most.size()) most = leaves;
    }
    return most;
  }

  bool chunked() const { return schedules_.front().chunks > 1; }
  std::string name_of(int slice, int chunk) const {
    if (!traits_of(goal_.collective).has_bytes()) return "heard of";
    return chunked() ? fmt::format("slice {}.{}", slice, chunk) : fmt::format("slice {}", slice);
  }

  // The messages of this round.
  std::vector<const Message*> travelling() const {
    std::vector<const Message*> messages;
    for (const auto& [ends, channel] : channels_) {
      for (const Message& message : channel) {
        if (message.round == round_) messages.push_back(&message);
      }
    }
    return messages;
  }

  std::string transfers() const {
    std::string text, line;
    for (const Message* message : travelling()) {
      const std::string what = message->slices.size() > 1 ? "slices " + slices_text(message->slices)
                                                          : name_of(message->region.slice, message->region.chunk);
      const std::string entry =
          fmt::format("  {} -> {}  {}: {}", message->from, message->to, what, to_text(message->leaves()));
      if (line.size() + std::max(entry.size(), kTransferWidth) > kLineWidth) text += trimmed(std::exchange(line, {}));
      line += fmt::format("{:<{}}", entry, kTransferWidth);
    }
    return text + trimmed(line);
  }

  // A table: ranks down, slices across.
  std::string holdings() const {
    const int columns = !traits_of(goal_.collective).has_bytes() ? 1 : schedules_.front().slices;
    const auto line = [&](std::string text, const auto& cell) {
      for (int slice = 0; slice < columns; ++slice) {
        for (int chunk = 0; chunk < schedules_.front().chunks; ++chunk)
          text += fmt::format("{:<11} ", cell(slice, chunk));
      }
      return trimmed(text);
    };
    std::string text = line("            ", [&](int slice, int chunk) { return name_of(slice, chunk); });
    for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
      text += line(fmt::format("  rank {:<4} ", rank),
                   [&](int slice, int chunk) { return to_text(held(rank, slice, chunk)); });
    }
    return text;
  }

  std::span<const Schedule> schedules_;
  const Layout& layout_;
  const Goal& goal_;
  std::vector<Rank> ranks_;
  std::map<std::pair<int, int>, std::vector<Message>> channels_;
  int round_ = 0;
};

}  // namespace

std::string watch(std::span<const Schedule> schedules, const Layout& layout, const Goal& goal) {
  return Lockstep(schedules, layout, goal).run();
}

}  // namespace tutti::internal::tools
