// Short calls that need no Request: they are done whole, at once, if the peers are there. What is not so simple gives
// false, and is done as every other call: the first of its kind, one that waits for long, any error.
#include <emmintrin.h>

#include "runtime/call_group.h"
#include "runtime/group.h"

namespace tutti::internal {
namespace {

// For messages that should be on their way: a few microseconds. Whoever waits for longer looks after other calls too.
constexpr int kLooks = 200;
// If all messages of a call are here, it takes about a microsecond at most for buffers of so many bytes.
constexpr std::size_t kShortBytes = 2 << 10;

}  // namespace

// As the plan can be done, so can each other call like it.
void Group::remember_at_once(const Plan& plan, std::uint64_t label) {
  const bool is_met = rendezvous_ != nullptr && plan.meets_on_device;
  const auto [known, fresh] = at_onces_.try_emplace(&plan);
  if (fresh && !is_met) known->second = AtOnce(plan, links_, workspace_);
  at_once_ = known->second ? &known->second : nullptr;
  const Call& call = plan.call;
  const bool is_transfer = at_once_ != nullptr && call.collective == Collective::transfer && plan.peers.size() == 1 &&
                           plans_.choose(call.collective, call.count, call.dtype, call.order) == call.algorithm;
  short_ = is_transfer ? ShortTransfer(plan, label, job_->sees_gpus()) : ShortTransfer();
}

void Group::forget_at_once() {
  at_onces_.clear();
  at_once_ = nullptr;
  short_ = ShortTransfer();
}

Tag Group::next_tag() const {
  return Call::numbered(Call::labelled(ready_plan_->tag, ready_label_), ledger_.count() + 1);
}

// The rest of a call that has sent its messages. The clock is read now: that takes as long as a message does, and these
// are on their way meanwhile.
bool Group::ends_at_once(const Tag& tag, const Engine::Lock& lock) {
  ledger_.begin();
  int looks = job_->engine().crowding().is_crowded() ? 1 : kLooks;
  for (AtOnce::Arrival arrival; (arrival = at_once_->look(tag)) != AtOnce::Arrival::whole; _mm_pause())
    if (arrival == AtOnce::Arrival::never || --looks == 0 || lock.is_wanted()) return false;
  at_once_->finish();
  const std::uint32_t number = ledger_.number_next();
  ledger_.enter(number);
  const bool is_short = ready_plan_->input_bytes <= kShortBytes && ready_plan_->output_bytes <= kShortBytes;
  if (is_short && looks == kLooks)  // it has not waited; a crowded rank may have lost the processor meanwhile
    ledger_.complete_at_once(number);
  else
    ledger_.complete(number);
  ++moves_;
  return true;
}

// It has been entered when its messages were sent.
void Group::go_on_with_sent() {
  ledger_.enter(current_->sequence);
  current_->stage = Request::Stage::entered;
}

bool Group::send_at_once(ConstBuffer data, std::size_t count, DType dtype, const CallOptions& options) {
  if (is_grouping()) return false;
  const Engine::Lock lock(job_->engine());
  if (!short_.is_like(data, count, dtype, options) || !can_go_at_once()) return false;
  const Tag tag = next_tag();
  return at_once_->send(tag, static_cast<const std::byte*>(data.data), nullptr) && ends_at_once(tag, lock);
}

bool Group::receive_at_once(Buffer data, std::size_t count, DType dtype, const CallOptions& options) {
  if (is_grouping()) return false;
  const Engine::Lock lock(job_->engine());
  if (!short_.is_like(data, count, dtype, options) || !can_go_at_once()) return false;
  const Tag tag = next_tag();
  return at_once_->send(tag, nullptr, static_cast<std::byte*>(data.data)) && ends_at_once(tag, lock);
}

}  // namespace tutti::internal
