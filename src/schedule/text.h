// Schedules as text, for people and for tests.
//
//   rank 0 of 2: 2 slices x 1 chunk, 0 scratch rows
//     send input[slice 1 chunk 0] to 1
//     output[slice 0 chunk 0] = finish(input[slice 0 chunk 0] + from 1)
//     send output[slice 0 chunk 0] to 1
//     receive output[slice 1 chunk 0] from 1
//     wait_receive 1 from 1
//
// One line a schedule or a step; `#` opens a comment, blank lines and indentation say nothing, and
// "1 slice" is as good as "1 slices". The grammar:
//
//   schedule = "rank" R "of" N ":" S ["exact"] "slices" "x" C "chunks" "," W "scratch rows"
//   step     = "send" extent "to" R | "receive" extent "from" R
//            | region "=" tree | region "=" "finish" "(" tree ")"
//            | "wait_send" K "to" R | "wait_receive" K "from" R
//   tree     = operand ["+" operand]
//   operand  = source | "(" tree ")"
//   source   = region | ["partial"] "from" R [part]    the next message from R, which is the result's part unless given
//   extent   = region, but with slices for S           a row of each, side by side
//   slices   = S ["-" S] {"," S ["-" S]}
//   region   = ("input" | "output" | "scratch" | "relay") part
//   part     = "[" ["row" W] "slice" S "chunk" C "]"    row 0 unless given
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/schedule.h"

namespace tutti::internal {

std::string_view to_string(StepKind kind);
std::string to_text(const Region& region);
std::string extent_text(const Schedule& schedule, const Step& step);               // of a send or receive
std::string slices_text(const std::vector<std::uint32_t>& slices);                 // "4-6, 9"
std::vector<std::uint32_t> slices_of(const Schedule& schedule, const Step& step);  // of a send or receive

// parse_schedules(to_text(s)) == s for what Builder writes. Throws Error{invalid_argument} where a tree is malformed.
std::string to_text(std::span<const Schedule> schedules);

// Throws Error{invalid_argument} naming the line.
std::vector<Schedule> parse_schedules(std::string_view text);

}  // namespace tutti::internal
