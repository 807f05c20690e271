#include "watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace tutti::tools {
namespace {

constexpr std::size_t kLineWidth = 110;

using Leaves = std::set<int>;

struct Message {
  int from, to;
  Region region;  // of the sender
  Leaves leaves;
  int round;           // in which it was sent: seen by the receiver in the next
  bool taken = false;  // the sender's memory has been given back
};

struct Posted {
  int peer;
  std::size_t message;  // number on the channel
  Region into;
  bool filled = false;
};

struct Rank {
  std::size_t next_step = 0;
  std::map<std::tuple<Space, int, int>, std::pair<int, Leaves>> memory;  // scratch: row, chunk; output: slice, chunk
  std::map<int, std::size_t> claimed;  // messages by peer
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

class Lockstep {
 public:
  Lockstep(std::span<const Schedule> schedules, const Layout& layout, const Goal& goal)
      : schedules_(schedules), layout_(layout), goal_(goal), ranks_(schedules.size()) {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) ranks_[rank].heard = {static_cast<int>(rank)};
  }

  std::string run() {
    std::string text = "at the start\n" + holdings();
    advance();
    while (!sent_.empty()) {
      text += fmt::format("\nround {}\n{}", ++round_, transfers());
      sent_.clear();
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
    ranks_[rank].heard.insert(message.leaves.begin(), message.leaves.end());
  }

  bool fill_posted(int rank) {
    bool moved = false;
    for (auto& [peer, list] : ranks_[rank].posted) {
      for (Posted& posted : list) {
        Message* message = posted.filled ? nullptr : arrived(peer, rank, posted.message);
        if (message == nullptr) continue;
        store(rank, posted.into, message->leaves);
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
        const Message message{rank, step.peer, step.region, read(rank, step.region), round_};
        channels_[{rank, step.peer}].push_back(message);
        sent_.push_back(message);
        return true;
      }
      case StepKind::receive:
        state.posted[step.peer].push_back({step.peer, state.claimed[step.peer]++, step.region});
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
      } else if (Message* message = arrived(source.peer, rank, claimed[source.peer]++)) {
        messages.push_back(message);
        result.insert(message->leaves.begin(), message->leaves.end());
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
    return {region.space, region.space == Space::scratch ? region.row : region.slice, region.chunk};
  }
  void store(int rank, const Region& region, const Leaves& leaves) {
    ranks_[rank].memory[place_of(region)] = {region.slice, leaves};
  }
  Leaves read(int rank, const Region& region) const {
    if (goal_.collective == Collective::barrier) return ranks_[rank].heard;
    if (region.space == Space::input) return {layout_.first_leaf[rank] + region.row};
    const auto found = ranks_[rank].memory.find(place_of(region));
    return found == ranks_[rank].memory.end() ? Leaves{} : found->second.second;
  }

  // The most that a rank has of a chunk, wherever it lies.
  Leaves held(int rank, int slice, int chunk) const {
    if (goal_.collective == Collective::barrier) return ranks_[rank].heard;
    Leaves most;
    const bool in_input = goal_.collective == Collective::all_gather  ? slice == rank
                          : goal_.collective == Collective::broadcast ? rank == goal_.root
                                                                      : true;
    for (int row = 0; in_input && row < layout_.leaves_of(rank); ++row) most.insert(layout_.first_leaf[rank] + row);
    for (const auto& [place, content] : ranks_[rank].memory) {
      const auto& [where, leaves] = content;
      if (where == slice && std::get<2>(place) == chunk && leaves.size() > most.size()) most = leaves;
    }
    return most;
  }

  bool chunked() const { return schedules_.front().chunks > 1; }
  std::string name_of(int slice, int chunk) const {
    if (goal_.collective == Collective::barrier) return "heard of";
    return chunked() ? fmt::format("slice {}.{}", slice, chunk) : fmt::format("slice {}", slice);
  }

  std::string transfers() const {
    std::string text, line;
    for (const Message& message : sent_) {
      const std::string entry =
          fmt::format("  {:<26}", fmt::format("{} -> {}  {}: {}", message.from, message.to,
                                              name_of(message.region.slice, message.region.chunk), to_text(message.leaves)));
      if (line.size() + entry.size() > kLineWidth) text += std::exchange(line, {}) + "\n";
      line += entry;
    }
    return text + line + "\n";
  }

  std::string holdings() const {
    const int columns = goal_.collective == Collective::barrier ? 1 : schedules_.front().slices;
    std::string text = fmt::format("  {:8}", "");
    for (int slice = 0; slice < columns; ++slice) {
      for (int chunk = 0; chunk < schedules_.front().chunks; ++chunk) text += fmt::format("{:10}", name_of(slice, chunk));
    }
    for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
      text += fmt::format("\n  rank {:<3}", rank);
      for (int slice = 0; slice < columns; ++slice) {
        for (int chunk = 0; chunk < schedules_.front().chunks; ++chunk) {
          text += fmt::format("{:10}", to_text(held(rank, slice, chunk)));
        }
      }
    }
    return text + "\n";
  }

  std::span<const Schedule> schedules_;
  const Layout& layout_;
  const Goal& goal_;
  std::vector<Rank> ranks_;
  std::map<std::pair<int, int>, std::vector<Message>> channels_;
  std::vector<Message> sent_;  // in this round
  int round_ = 0;
};

}  // namespace

std::string watch(std::span<const Schedule> schedules, const Layout& layout, const Goal& goal) {
  return Lockstep(schedules, layout, goal).run();
}

}  // namespace tutti::tools
