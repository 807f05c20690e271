// What the file of an algorithm says of it beside the schedule. The tests hold each claim against the schedules.
#pragma once

#include <cstdint>
#include <string_view>

namespace tutti::internal {

// What a rank sends to several others, and may copy once for all of them (Message::copies_once).
enum class Copied : std::uint8_t { nothing, input, output };

struct AlgorithmClaims {
  std::string_view idea;    // one line
  bool canonical;           // keeps the canonical order, for any number of ranks; true where nothing is combined
  bool several_leaves;      // takes ranks that hold several leaves, or none; otherwise they are refused
  bool pipelined;           // uses Message::chunks
  bool joins_rows = false;  // some messages are of several rows: these must have one length
  Copied copied_once = Copied::nothing;

  // Costs among n ranks of one host, one leaf a rank: formulas of n, of c chunks, of M, the bytes of the whole message,
  // and of log n, which is rounded up. "at most" may stand before one. README.md says what they count.
  std::string_view messages;       // of all ranks together
  std::string_view bytes;          // sent by the rank that sends most
  std::string_view rounds;         // for one chunk
  std::string_view between_hosts;  // bytes that the rank which sends most sends to other hosts, where each of h hosts
                                   // holds g ranks, an aligned power of two; empty: nothing is claimed
};

}  // namespace tutti::internal
