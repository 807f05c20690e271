// What stands behind a Communicator: its ranks, the channels to them, its calls in order, and its failure.
//
// Five files implement it: group.cc (it is made, it leaves), group_submit.cc (calls are checked and made),
// group_advance.cc (calls move), group_wait.cc (a thread waits), group_failure.cc (a call fails, and all hear of it).
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

  // Counts the groups that are split off; returns their number, the new one included.
  std::uint32_t count_split() { return ++splits_; }
  // Waits for the calls that the progress thread drives. Afterwards only the caller's threads use this group.
  void drain();

  // Waits for all calls, then leaves. Throws the group's failure, or Error{mismatch} if another rank made other calls.
  void finalize();
  // Tells the hub which calls this rank has made. Does so once, and not if a call has failed or is not over. Under the
  // engine's lock.
  void leave(bool is_awaited = false);
  // A call is not over. Under the engine's lock.
  bool is_busy() const override { return current_ != nullptr || !queue_.empty(); }
  // The process exits: aborts the calls that are not over, then leaves. Under the engine's lock.
  void leave_at_exit() override;
  // The process exits: every later call fails. Thread-safe.
  void fail_at_exit() override;
  // Logs a failure that no call has thrown, once: for a destructor, which cannot throw. Under the engine's lock.
  void tell_untold();
  // Waits for a call. If it fails, the next call throws that; this one does not.
  void wait_untold(Request& request);
  // In a forked child.
  void live_for_ever() override { self_ = weak_from_this().lock(); }

  // Thread-safe. fail() marks only this rank's group; abort() also tells all other ranks.
  void fail(Failure failure);
  void abort(Failure failure);
  bool has_failed() const { return failure_.has_failed(); }
  std::optional<Error> failure() const;  // what refuse() would throw
  // On the control thread. The job has lost a rank. Messages of that rank may still be on their way, so calls that have
  // been made fail only when they no longer move. New calls fail at once.
  void lose(int job_rank, const std::string& why) override;
  void on_notice(const Notice& notice) override;  // likewise

  // Under the engine's lock.
  void advance() override;
  // Looks after the calls that the progress thread drives, for that thread waits for one at a time.
  void watch_driven(BackoffPolicy::Clock::time_point now) override;
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
  const Plan& plan_for(const CallSpec& spec, PlanCache::Buffers buffers);
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
  DeviceRendezvous* const rendezvous_;  // nullptr: there is no device, or there are too many ranks
  std::unique_ptr<Staging> staging_;    // once a call has been staged
  DeviceHealth device_health_;
  bool was_driven_ = false;           // the progress thread has had calls of this group
  int driven_ = 0;                    // the progress thread's calls that are not over
  const Plan* ready_plan_ = nullptr;  // its channels are open and its workspace is there
  Request* current_ = nullptr;
  std::deque<Request*> queue_;
  std::uint64_t moves_ = 0;  // of operations that are over

  // A peer's channel has closed, and the control plane has until then to say why.
  std::optional<std::pair<ChannelClosed, BackoffPolicy::Clock::time_point>> cut_off_;

  std::optional<BackoffPolicy::Clock::time_point> given_up_at_;
  BackoffPolicy::Clock::time_point released_at_{};  // the last of what was given up

  PeerAnswers answers_{members_};
  bool has_parted_ = false;
  std::shared_ptr<Group> self_;
};

}  // namespace tutti::internal
