// What a rank does early, in the pass of a reduce or before it (plan_proof.cc proves that it may).
#include <cstdint>

#include "executor/operation.h"

namespace tutti::internal {

// Where the peers that get this result next can be written to directly, the result goes there in the same pass. If it
// is a copy of what is sent to the others, that can go before: they begin meanwhile. Whether anything has.
bool Operation::begin_pushes(const ReduceStep& step) {
  first_push_ = next_ + 1;
  const PlanSource& only = plan_->sources[step.first_source];
  const bool copies = step.source_count == 1 && only.peer == kLocal;
  // A copy to where the bytes lie already: the sends that follow do all that is to be done.
  const bool is_in_place = copies && !step.finish && at(only.from()) == at(step.to);
  pass_ = {.sent_first = step.sends_source && !is_sent_};
  bool sent_any = false;
  for (std::size_t i = 0; i < step.pushes; ++i) {
    const SendStep& send = pushed_send(i);
    Channel& to = channel(send.peer);
    const std::byte* const source = copies ? at(send.from) : nullptr;
    std::byte*& room = workspace_->pushed[i];
    room = is_sent_ || is_in_place ? nullptr : to.reserve(tag_, send.bytes, source, send.copier, step.past_cache);
    if (room != nullptr || is_sent_) continue;
    if (step.read_there && send.copier.shared != SharedCopier::sender) pass_.is_far |= to.reads_from_far(send.bytes);
    if (!pass_.sent_first) continue;
    to.send(tag_, at(send.from), send.bytes, send.copier);
    sent_any = true;
  }
  return sent_any;
}

// The finisher of a reduce writes the output. If that is the input too, its loans have to be back.
bool Operation::can_finish(const ReduceStep& step) {
  if (step.finisher == 0) return false;
  const auto input = reinterpret_cast<std::uintptr_t>(at({Space::input, 0}));
  const auto output = reinterpret_cast<std::uintptr_t>(at({Space::output, 0}));
  if (input + plan_->input_bytes <= output || output + plan_->output_bytes <= input) return true;
  for (std::size_t i = next_ + 1; i < step.finisher; ++i)
    if (!is_back(known<WaitStep>(plan_->steps[i]))) return false;
  return true;
}

}  // namespace tutti::internal
