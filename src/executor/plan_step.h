// The steps of a plan, by kind: what each needs to run, in bytes.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <variant>

#include "schedule/schedule.h"
#include "transport/transport.h"

namespace tutti::internal {

// Memory from `offset` bytes behind the beginning of a space.
struct Place {
  Space space = Space::input;
  std::size_t offset = 0;
  friend auto operator<=>(const Place&, const Place&) = default;
};

struct SendStep {
  std::int32_t peer = kLocal;
  bool fused = false;  // the reduce before it may already have written to the peer
  Copier copier;
  Place from;
  std::size_t bytes = 0;
};

struct ReceiveStep {
  std::int32_t peer = kLocal;
  std::uint32_t message = 0;  // which of the peer's messages of this operation, from 0
  ReceiveHints hints;         // past_cache as of a reduce
  Place to;
  std::size_t bytes = 0;
};

struct ReduceStep {
  Place to;
  std::size_t count = 0;           // elements
  std::uint8_t element_bytes = 1;  // of the result
  bool partial = false;            // the result is of the accumulation type: it lies in scratch
  bool finish = false;
  // What it writes outgrows the cache, and no later step reads it but the sends that it pushes to.
  bool past_cache = false;
  bool sends_source = false;  // a copy whose pushes are sends of its source, not of what it makes: they may go first
  bool fetches_to_write = false;  // as of ReceiveHints, of what other ranks have sent
  bool read_there = false;        // a copy in scratch, which its pushes send: other ranks may read it there
  std::uint32_t first_source = 0, source_count = 0;
  std::uint32_t pushes = 0;     // how many of the steps right behind it send what it makes, or copies
  std::uint32_t reduction = 0;  // index in Plan::reductions
  // 0, or the step that finishes this result. Then the rank sends nothing but input; only waits for sends stand between
  // the two steps, and only waits come behind the second. Once the input is back, or if input and output are apart,
  // both are one pass, by the reduction behind this one.
  std::uint32_t finisher = 0;
};

struct WaitStep {
  bool for_sends = false;  // that have been taken; else for receives that have been filled
  std::int32_t peer = kLocal;
  std::uint32_t messages = 0;  // how many of them, counted from the start of the operation
};

using PlanStep = std::variant<SendStep, ReceiveStep, ReduceStep, WaitStep>;

// Of a step that is known to be of that kind. Unlike std::get, it takes no instructions to look.
template <class Kind>
const Kind& known(const PlanStep& step) {
  const Kind* const found = std::get_if<Kind>(&step);
  assert(found != nullptr);
  if (found == nullptr) __builtin_unreachable();
  return *found;
}

struct PlanSource {
  std::int32_t peer = kLocal;
  std::uint8_t joins = 0;
  bool partial = false;
  std::uint8_t element_bytes = 1;
  Space space = Space::input;  // of a local source, as is `offset`
  std::size_t offset = 0;
  Place from() const { return {space, offset}; }
};

// Messages of one plan's operations and one peer.
struct Traffic {
  std::uint32_t sends = 0;
  std::uint32_t lends = 0;     // of the sends, those up to the last one that the call has to get back
  std::uint32_t receives = 0;  // posted
  std::uint32_t arrivals = 0;  // received or viewed
  friend bool operator==(const Traffic&, const Traffic&) = default;
};

}  // namespace tutti::internal
