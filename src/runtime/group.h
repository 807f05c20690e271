// What stands behind a Communicator: the ranks, the links to them, the calls in order, and how all that fails.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/control.h"
#include "runtime/backoff_policy.h"
#include "runtime/call_ledger.h"
#include "runtime/failure_state.h"
#include "runtime/job.h"
#include "runtime/members.h"
#include "runtime/peer_answers.h"
#include "runtime/plan_cache.h"
#include "runtime/request.h"
#include "runtime/stall_detector.h"
#include "staging/device_health.h"
#include "tutti/communicator.h"

namespace tutti::internal {

class Group final : public JobMember, public std::enable_shared_from_this<Group> {
 public:
  static std::shared_ptr<Group> make(std::shared_ptr<Job> job, std::uint64_t id, const Members& members);
  ~Group();

  std::uint64_t id() const override { return id_; }
  int rank() const { return members_.rank(); }
  int size() const { return members_.size(); }
  const Members& members() const { return members_; }
  Job& job() { return *job_; }
  const std::shared_ptr<Job>& shared_job() { return job_; }
  Algorithm choose(Collective collective, std::size_t count, DType dtype, Order order) const {
    return plans_.choose(collective, count, dtype, order);
  }

  // Throw Error{invalid_argument, unsupported} before anything is sent. With a stream, run() does not wait either.
  void run(const CallSpec& spec, ConstBuffer input, Buffer output, void* stream = nullptr);
  std::shared_ptr<Request> start(const CallSpec& spec, ConstBuffer input, Buffer output, void* stream = nullptr);
  bool test(Request& request);
  void wait(Request& request);

  // How many groups have been split off, with this one.
  std::uint32_t count_split() { return ++splits_; }
  // Waits for what the job's thread drives: no thread but the caller's own holds the communicator from then on.
  void drain();

  // Waits for all calls, then leaves. Throws the failure, and Error{mismatch} as Partings say.
  void finalize();
  // Says what this rank has called, once, unless a call has failed or is not over. Under the engine's lock.
  void leave(bool is_awaited = false);
  // When the process exits: calls that are not over are aborted, then it leaves. Under the engine's lock.
  bool is_busy() const override { return current_ != nullptr || !queue_.empty(); }
  void leave_at_exit() override;
  void fail_at_exit() override;  // any call from then on; thread-safe
  // Says what failed and was thrown to nobody, once: for when nothing can be thrown any more. Under the engine's lock.
  void tell_untold();
  // Waits for a call whose caller does not want to hear of its failure.
  void wait_untold(Request& request);
  // In a forked child.
  void live_for_ever() override { self_ = weak_from_this().lock(); }

  // Thread-safe. fail() marks only this rank's communicator; abort() tells everyone.
  void fail(Failure failure);
  void abort(Failure failure);
  bool has_failed() const { return failure_.has_failed(); }
  // On the control thread. A rank of the job is lost, and why. What it has sent may still be on its way, and be all
  // that the calls need that have been made: they fail when they come to a stand. No call is made any more.
  void lose(int job_rank, const std::string& why) override;
  void on_notice(const Notice& notice) override;  // likewise

  // Under the engine's lock.
  void advance() override;
  void watch_driven(
      BackoffPolicy::Clock::time_point now) override;  // calls that the job's thread drives, once their turn comes
  std::uint64_t moves() const override { return moves_ + (current_ != nullptr ? current_->operation.moves() : 0); }

 private:
  Group(std::shared_ptr<Job> job, std::uint64_t id, const Members& members);
  struct Sides {
    Side in, out;
    bool staged() const { return in.staged || out.staged; }
  };
  Sides look_at(const CallSpec& spec, ConstBuffer input, Buffer output, void* stream) const;
  Sides look_at_devices(const CallSpec& spec, ConstBuffer input, Buffer output, void* stream) const;
  void admit(Request& request, const CallSpec& spec, const Sides& sides, ConstBuffer input, Buffer output, void* stream,
             Engine::Lock& lock);
  void stage(Request& request, const Sides& sides, void* stream, Engine::Lock& lock);
  bool goes_ahead(const Sides& sides, void* stream) const {
    return job_->goes_ahead() && (stream != nullptr || sides.staged());
  }
  void enqueue_staged(Request& request, Engine::Lock& lock);
  std::shared_ptr<Request> start(const CallSpec& spec, const Sides& sides, ConstBuffer input, Buffer output,
                                 void* stream);
  const Plan& plan_for(const CallSpec& spec, bool packed);
  void make_ready(const Plan& plan, std::uint32_t sequence);
  void enter(Request& request);
  void enter_rendezvous(Request& request);
  bool has_met(Request& request);
  bool begin_part(Request& request);
  void finish_all(Engine::Lock& lock);
  bool on_device(Request& request, bool done);
  bool is_quiet(Request& request);
  void complete_current();
  void drive(Request& request, Engine::Lock& lock);
  void watch(BackoffPolicy::Clock::time_point now);
  void watch_device();
  bool is_cut_off();
  bool run_current();
  void give_up();
  void keep_staging();
  void finish(Request& request);
  void finish(Request& request, Engine::Lock& lock);
  void abandon(Request& request);
  static void order_after(Request& request);
  void abort_mismatch(int peer, Tag mine, const Tag& theirs);
  bool finds_unclaimed();
  void fail_by_loss();
  [[noreturn]] void refuse();
  [[noreturn]] void tell(const Error& error);
  Error error_for(const Request* request) const;

  const std::shared_ptr<Job> job_;
  const std::uint64_t id_;
  const Members members_;

  PlanCache plans_;
  CallLedger ledger_;
  FailureState failure_;
  StallDetector stall_;
  std::uint32_t splits_ = 0;
  std::vector<PeerLink> links_;
  Workspace workspace_;
  std::shared_ptr<SymmetricMemory> scratch_;
  DeviceRendezvous* const rendezvous_;  // where those meet; nullptr: no device, or too many ranks
  std::unique_ptr<Staging> staging_;    // once a call was staged
  DeviceHealth device_health_;
  bool was_driven_ = false;           // the job's thread has had calls of it
  int driven_ = 0;                    // those that are not over
  const Plan* ready_plan_ = nullptr;  // whose channels are open and whose workspace is there
  Request* current_ = nullptr;
  std::deque<Request*> queue_;
  std::uint64_t moves_ = 0;  // of operations that are over

  // A peer's channel has closed; until when the control plane may say why.
  std::optional<std::pair<ChannelClosed, BackoffPolicy::Clock::time_point>> cut_off_;

  std::optional<BackoffPolicy::Clock::time_point> given_up_at_;
  BackoffPolicy::Clock::time_point released_at_{};  // the last of what was given up

  PeerAnswers answers_{members_};
  bool has_parted_ = false;
  std::shared_ptr<Group> self_;
};

}  // namespace tutti::internal
