#include "executor/tempting.h"

#include "schedule/text.h"

namespace tutti::internal {
namespace {

constexpr std::string_view kOtherResult = R"(
  rank 0 of 3: 1 slice x 1 chunk, 2 scratch rows
    scratch[row 0 slice 0 chunk 0] = input[slice 0 chunk 0] + from 1
    scratch[row 1 slice 0 chunk 0] = scratch[row 0 slice 0 chunk 0] + from 2
    send scratch[row 0 slice 0 chunk 0] to 2
    send scratch[row 1 slice 0 chunk 0] to 1
    output[slice 0 chunk 0] = finish(scratch[row 1 slice 0 chunk 0])
  rank 1 of 3: 1 slice x 1 chunk, 1 scratch row
    send input[slice 0 chunk 0] to 0
    receive scratch[row 0 slice 0 chunk 0] from 0
    wait_receive 1 from 0
    wait_send 1 to 0
    output[slice 0 chunk 0] = finish(scratch[row 0 slice 0 chunk 0])
  rank 2 of 3: 1 slice x 1 chunk, 1 scratch row
    send input[slice 0 chunk 0] to 0
    receive scratch[row 0 slice 0 chunk 0] from 0
    wait_receive 1 from 0
    wait_send 1 to 0
    output[slice 0 chunk 0] = finish(scratch[row 0 slice 0 chunk 0] + input[slice 0 chunk 0])
)";

constexpr std::string_view kSamePeer = R"(
  rank 0 of 2: 1 slice x 1 chunk, 0 scratch rows
    output[slice 0 chunk 0] = finish(input[slice 0 chunk 0] + from 1)
    send output[slice 0 chunk 0] to 1
    send output[slice 0 chunk 0] to 1
  rank 1 of 2: 1 slice x 1 chunk, 0 scratch rows
    send input[slice 0 chunk 0] to 0
    receive output[slice 0 chunk 0] from 0
    wait_receive 1 from 0
    receive output[slice 0 chunk 0] from 0
)";

constexpr std::string_view kSentOn = R"(
  rank 0 of 2: 1 slice x 1 chunk, 1 scratch row
    send input[slice 0 chunk 0] to 1
    scratch[row 0 slice 0 chunk 0] = input[slice 0 chunk 0] + from 1
    wait_send 1 to 1
    output[slice 0 chunk 0] = finish(scratch[row 0 slice 0 chunk 0])
    send scratch[row 0 slice 0 chunk 0] to 1
  rank 1 of 2: 1 slice x 1 chunk, 2 scratch rows
    send input[slice 0 chunk 0] to 0
    scratch[row 1 slice 0 chunk 0] = from 0
    receive scratch[row 0 slice 0 chunk 0] from 0
    wait_receive 1 from 0
    wait_send 1 to 0
    output[slice 0 chunk 0] = finish(scratch[row 0 slice 0 chunk 0])
)";

constexpr std::string_view kSendBetween = R"(
  rank 0 of 2: 1 slice x 1 chunk, 2 scratch rows
    scratch[row 1 slice 0 chunk 0] = input[slice 0 chunk 0]
    scratch[row 0 slice 0 chunk 0] = scratch[row 1 slice 0 chunk 0] + from 1
    send scratch[row 1 slice 0 chunk 0] to 1
    output[slice 0 chunk 0] = finish(scratch[row 0 slice 0 chunk 0])
  rank 1 of 2: 1 slice x 1 chunk, 1 scratch row
    send input[slice 0 chunk 0] to 0
    receive scratch[row 0 slice 0 chunk 0] from 0
    wait_receive 1 from 0
    wait_send 1 to 0
    output[slice 0 chunk 0] = finish(scratch[row 0 slice 0 chunk 0] + input[slice 0 chunk 0])
)";

constexpr std::string_view kOtherFinish = R"(
  rank 0 of 2: 1 slice x 1 chunk, 2 scratch rows
    scratch[row 0 slice 0 chunk 0] = input[slice 0 chunk 0] + from 1
    scratch[row 1 slice 0 chunk 0] = input[slice 0 chunk 0]
    output[slice 0 chunk 0] = finish(scratch[row 0 slice 0 chunk 0])
    send scratch[row 0 slice 0 chunk 0] to 1
  rank 1 of 2: 1 slice x 1 chunk, 1 scratch row
    send input[slice 0 chunk 0] to 0
    receive scratch[row 0 slice 0 chunk 0] from 0
    wait_receive 1 from 0
    wait_send 1 to 0
    output[slice 0 chunk 0] = finish(scratch[row 0 slice 0 chunk 0])
)";

constexpr std::string_view kPushBetween = R"(
  rank 0 of 2: 1 slice x 1 chunk, 1 scratch row
    scratch[row 0 slice 0 chunk 0] = input[slice 0 chunk 0] + from 1
    send scratch[row 0 slice 0 chunk 0] to 1
    output[slice 0 chunk 0] = finish(scratch[row 0 slice 0 chunk 0])
  rank 1 of 2: 1 slice x 1 chunk, 1 scratch row
    send input[slice 0 chunk 0] to 0
    receive scratch[row 0 slice 0 chunk 0] from 0
    wait_receive 1 from 0
    wait_send 1 to 0
    output[slice 0 chunk 0] = finish(scratch[row 0 slice 0 chunk 0])
)";

// The sends of the end are counted from the reduce before.
constexpr std::string_view kEndPushes = R"(
  rank 0 of 4: 1 slice x 1 chunk, 2 scratch rows
    scratch[row 0 slice 0 chunk 0] = input[slice 0 chunk 0] + from 1
    send scratch[row 0 slice 0 chunk 0] to 1
    send scratch[row 0 slice 0 chunk 0] to 2
    send scratch[row 0 slice 0 chunk 0] to 3
    scratch[row 1 slice 0 chunk 0] = scratch[row 0 slice 0 chunk 0] + (from 2 + from 3)
    wait_send 1 to 1
    output[slice 0 chunk 0] = finish(scratch[row 1 slice 0 chunk 0])
    send output[slice 0 chunk 0] to 1
    send output[slice 0 chunk 0] to 2
    send output[slice 0 chunk 0] to 3
  rank 1 of 4: 1 slice x 1 chunk, 1 scratch row
    send input[slice 0 chunk 0] to 0
    scratch[row 0 slice 0 chunk 0] = partial from 0
    wait_send 1 to 0
    receive output[slice 0 chunk 0] from 0
  rank 2 of 4: 1 slice x 1 chunk, 1 scratch row
    send input[slice 0 chunk 0] to 0
    scratch[row 0 slice 0 chunk 0] = partial from 0
    wait_send 1 to 0
    receive output[slice 0 chunk 0] from 0
  rank 3 of 4: 1 slice x 1 chunk, 1 scratch row
    send input[slice 0 chunk 0] to 0
    scratch[row 0 slice 0 chunk 0] = partial from 0
    wait_send 1 to 0
    receive output[slice 0 chunk 0] from 0
)";

// What is lent is not the input.
constexpr std::string_view kLendsScratch = R"(
  rank 0 of 2: 1 slice x 1 chunk, 2 scratch rows
    scratch[row 1 slice 0 chunk 0] = input[slice 0 chunk 0]
    send scratch[row 1 slice 0 chunk 0] to 1
    scratch[row 0 slice 0 chunk 0] = input[slice 0 chunk 0] + from 1
    wait_send 1 to 1
    output[slice 0 chunk 0] = finish(scratch[row 0 slice 0 chunk 0])
  rank 1 of 2: 1 slice x 1 chunk, 2 scratch rows
    send input[slice 0 chunk 0] to 0
    scratch[row 1 slice 0 chunk 0] = input[slice 0 chunk 0]
    scratch[row 0 slice 0 chunk 0] = partial from 0
    wait_send 1 to 0
    output[slice 0 chunk 0] = finish(scratch[row 0 slice 0 chunk 0] + scratch[row 1 slice 0 chunk 0])
)";

template <const std::string_view& text>
Tempting make(std::string_view what) {
  const auto schedule = [](int rank, const Layout&, const Message&) {
    return parse_schedules(text)[static_cast<std::size_t>(rank)];
  };
  return {.what = what,
          .ranks = static_cast<int>(parse_schedules(text).size()),
          .entry = {{.idea = what, .canonical = true, .several_leaves = false, .pipelined = false},
                    Collective::all_reduce,
                    Algorithm::automatic,
                    schedule}};
}

}  // namespace

std::vector<Tempting> tempting() {
  return {make<kOtherResult>("a send of another result of the same slice"),
          make<kSamePeer>("two sends to one peer"),
          make<kSentOn>("the end of a result that is sent on"),
          make<kSendBetween>("the end of a result that a send stands before"),
          make<kOtherFinish>("the end of another result"),
          make<kPushBetween>("the end of a result that is stored for a peer too"),
          make<kEndPushes>("the end of a result that is stored for peers then"),
          make<kLendsScratch>("the end of a result while scratch is lent")};
}

}  // namespace tutti::internal
