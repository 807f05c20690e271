// What stands behind a Communicator: its ranks, the channels to them, its calls in order, and its failure.
//
// Seven files implement it: group.cc (it is made, it leaves), group_submit.cc (calls are checked and begun),
// group_start.cc (started ones), group_advance.cc (calls move), group_wait.cc (a thread waits), group_probe.cc (it
// looks for a message of any peer), group_failure.cc (a call fails, and all hear of it).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/control.h"
#include "executor/at_once.h"
#include "runtime/backoff_policy.h"
#include "runtime/call_ledger.h"
#include "runtime/failure_state.h"
#include "runtime/job.h"
#include "runtime/members.h"
#include "runtime/peer_answers.h"
#include "runtime/plan_cache.h"
#include "runtime/progress_thread.h"
#include "runtime/request.h"
#include "runtime/short_transfer.h"
#include "runtime/stall_detector.h"
#include "staging/device_health.h"
#include "tutti/communicator.h"

namespace tutti::internal {

// Also of what is no kind at all, so that it is refused where devices are looked at.
inline bool is_of_device(MemoryKind kind) { return kind >= MemoryKind::device; }

class Group final : public JobMember, public std::enable_shared_from_this<Group> {
 public:
  // timeout: as set_timeout() sets it.
  static std::shared_ptr<Group> make(std::shared_ptr<Job> job, std::uint64_t id, const Members& members,
                                     std::chrono::milliseconds timeout = {});
  // What this rank sends to `peer`, or receives from it: a group of the two that makes transfers only, one after the
  // other, whatever the other calls of this one do. It shares the failure of this one. Made when first asked for.
  // Thread-safe. Throws Error{invalid_argument}.
  Group& lane_to(int peer) { return lane(rank(), peer); }
  Group& lane_from(int peer) { return lane(peer, rank()); }
  // If it was asked for before; else nullptr.
  Group* known_lane_to(int peer) const { return known_lane(peer, true); }
  Group* known_lane_from(int peer) const { return known_lane(peer, false); }
  // A rank that has sent what no receive here is waiting for; nothing if there is none by then. A time of 0: looks
  // once. Makes the lanes from all ranks. Throws the group's failure.
  std::optional<int> probe(BackoffPolicy::Clock::time_point until);
  // A group of this rank alone, for what it sends to itself.
  Group& lane_to_self() { return lane(rank(), rank()); }
  ~Group();

  std::uint64_t id() const override { return id_; }
  std::uint64_t told_as() const override { return told_as_; }
  std::uint64_t serial() const { return serial_; }  // of the groups that this process has made; never 0
  int rank() const { return members_.rank(); }
  int size() const { return members_.size(); }
  const Members& members() const { return members_; }
  Job& job() { return *job_; }
  const std::shared_ptr<Job>& shared_job() { return job_; }
  const Engine& engine() const { return job_->engine(); }
  Algorithm choose(Collective collective, std::size_t count, DType dtype, Order order) const {
    return plans_.choose(collective, count, dtype, order);
  }

  // Throw Error{invalid_argument, unsupported} before anything is sent. With a stream, run() does not wait either.
  void run(const CallSpec& spec, ConstBuffer input, Buffer output, const Terms& terms = {});
  std::shared_ptr<Request> start(const CallSpec& spec, ConstBuffer input, Buffer output, const Terms& terms = {});
  // On a lane. True: the call is made, and is over. False: nothing has happened, and run() makes it. Throw only what
  // taking the engine's lock throws.
  bool send_at_once(ConstBuffer data, std::size_t count, DType dtype, const CallOptions& options);
  bool receive_at_once(Buffer data, std::size_t count, DType dtype, const CallOptions& options);
  // What start() does, in steps, for calls that begin together. check() throws what the call's arguments are refused
  // with; begin() does not wait, settle() does where the call is on a stream that nobody drives.
  void check(const CallSpec& spec, ConstBuffer input, Buffer output, const Terms& terms);
  void begin(const std::shared_ptr<Request>& request, const CallSpec& spec, ConstBuffer input, Buffer output,
             const Terms& terms);
  void settle(Request& request, const Terms& terms);
  // Advances calls without blocking, as test() does, and throws nothing.
  void look_after();
  bool test(Request& request);
  // False where it is not over by then.
  bool wait(Request& request, BackoffPolicy::Clock::time_point until = BackoffPolicy::Clock::time_point::max());
  // Advances the other calls of the job as eagerly as this one.
  void wait_among_others(Request& request);
  // Once the request is over, the job's thread calls `tell`.
  void tell_when_over(const std::shared_ptr<Request>& request, ProgressThread::Tell tell);
  // For the calls that name no timeout of their own; 0: the job's. The caller does not hold the engine's lock.
  void set_timeout(std::chrono::milliseconds timeout);
  // Of a started call that may be over. Otherwise likewise; 0: the group's.
  void set_timeout(Request& request, std::chrono::milliseconds timeout);
  std::chrono::milliseconds timeout() const;

  // The caller's own operators: of calls that name the same number, each rank's own function.
  std::size_t custom_operators() const { return plans_.customs(); }
  Operator add_custom(CustomOperator custom);

  // Counts the groups that are split off; returns their number, the new one included.
  std::uint32_t count_split() { return ++splits_; }
  // Likewise those that some of the ranks have made alone, and that have this `key`. The caller does not hold the
  // engine's lock.
  std::uint32_t count_subgroup(std::uint64_t key);
  // Waits for the calls that the progress thread drives, of its lanes too. Afterwards only the caller's threads use
  // this group.
  void drain();

  // Waits for all calls, then leaves. Throws the group's failure, or Error{mismatch} if another rank made other calls.
  void finalize();
  // Tells the hub which calls this rank has made, of its lanes too. Does so once, and not if a call has failed or is
  // not over. Under the engine's lock.
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

  // Thread-safe. fail() marks only this rank's group. accuse() asks the hub for the verdict that all ranks will hear;
  // until then the calls stand still. abort() does so too, and waits for it: not on the control thread. failure.peer:
  // of this group.
  void fail(Failure failure);
  void accuse(Failure failure);
  void abort(Failure failure);
  bool has_failed() const { return failure_->has_failed(); }
  std::optional<Error> failure() const;  // what refuse() would throw
  // No call begins any more: throws why.
  [[noreturn]] void refuse();
  // On the control thread. The job has lost a rank. Messages of that rank may still be on their way, so calls that have
  // been made fail only when they no longer move. New calls fail at once.
  void lose(const Notice& loss) override;
  void on_notice(const Notice& notice) override;  // likewise

  // Under the engine's lock.
  void advance() override;
  void abandon(Request& request) override;
  void watch(BackoffPolicy::Clock::time_point now) override;
  void watch_driven(BackoffPolicy::Clock::time_point now) override;
  std::uint64_t moves() const override { return moves_ + (current_ != nullptr ? current_->operation.moves() : 0); }

 private:
  Group(std::shared_ptr<Job> job, std::uint64_t id, const Members& members, std::shared_ptr<FailureState> failure,
        std::uint64_t told_as);
  void begin();
  Group& lane(int from, int to);
  static std::size_t place_of_lane(int peer, bool sends) {
    return 2 * static_cast<std::size_t>(peer) + (sends ? 1 : 0);
  }
  Group* known_lane(int peer, bool sends) const {
    const std::size_t place = place_of_lane(peer, sends);  // of a negative rank: beyond all
    return place < lane_at_.size() ? lane_at_[place].load(std::memory_order_acquire) : nullptr;
  }
  std::vector<std::shared_ptr<Group>> lanes() const;
  bool has_message();
  std::optional<int> find_sender() const;
  struct Sides {
    Side in, out;
    bool staged() const { return in.staged || out.staged; }
  };
  // In the usual case there is nothing about devices to find out.
  Sides look_at(const CallSpec& spec, ConstBuffer input, Buffer output, void* stream) const {
    const bool may_be = is_of_device(input.memory) || is_of_device(output.memory);
    if (!job_->sees_gpus() && stream == nullptr && !may_be) return {};
    return look_at_devices(spec, input, output, stream);
  }
  Sides look_at_devices(const CallSpec& spec, ConstBuffer input, Buffer output, void* stream) const;
  void admit(Request& request, const CallSpec& spec, const Sides& sides, ConstBuffer input, Buffer output,
             const Terms& terms, Engine::Lock& lock);
  const Plan& plan_for_memory(const Request& request) const;
  void stage(Request& request, const Sides& sides, void* stream, Engine::Lock& lock);
  void make_room(const Plan& plan, const Sides& sides, void* stream, Engine::Lock& lock);
  enum class AtOnceEnd { not_begun, sent, over };  // sent: the call is begun, and has sent what it sends
  AtOnceEnd run_at_once(const CallSpec& spec, const Sides& sides, ConstBuffer input, Buffer output, const Terms& terms,
                        const Engine::Lock& lock);
  void remember_at_once(const Plan& plan, std::uint64_t label);
  bool can_go_at_once() const { return !is_busy() && !cut_off_ && failure_->is_well(); }
  Tag next_tag() const;
  void forget_at_once();
  bool ends_at_once(const Tag& tag, const Engine::Lock& lock);
  void go_on_with_sent();
  bool goes_ahead(const Sides& sides, void* stream) const {
    return job_->goes_ahead() && (stream != nullptr || sides.staged());
  }
  void give_to_progress_thread(const std::shared_ptr<Request>& request, ProgressThread::Tell tell = {});
  void enqueue_staged(Request& request, Engine::Lock& lock);
  void begin(const std::shared_ptr<Request>& request, const CallSpec& spec, const Sides& sides, ConstBuffer input,
             Buffer output, const Terms& terms);
  const Plan& plan_for(const CallSpec& spec, PlanCache::Buffers buffers);
  void make_ready(const Request& request);
  void enter(Request& request);
  void enter_rendezvous(Request& request);
  bool has_met(Request& request);
  bool begin_part(Request& request);
  static const std::byte* scaled(Request& request, const std::byte* input);
  void finish_all(Engine::Lock& lock);
  bool on_device(Request& request, bool done);
  bool is_quiet(Request& request);
  void complete_current();
  bool drive(Request& request, Engine::Lock& lock,
             BackoffPolicy::Clock::time_point until = BackoffPolicy::Clock::time_point::max(),
             bool among_others = false);
  std::chrono::milliseconds current_timeout() const;
  std::string name_of_timeout() const;
  void watch_device();
  void record_wait(int peer, bool takes, BackoffPolicy::Clock::time_point now);
  bool is_cut_off();
  bool run_current();
  void give_up();
  void keep_staging();
  void leave_copies() noexcept;
  void finish(Request& request);
  bool finish(Request& request, Engine::Lock& lock,
              BackoffPolicy::Clock::time_point until = BackoffPolicy::Clock::time_point::max(),
              bool among_others = false);
  static void order_after(Request& request);
  void await_verdict();
  Failure mismatch_with(int peer, Tag mine, const Tag& theirs) const;
  Failure mismatch_of_long_ago(int peer) const;
  Failure own_failure(const std::string& why) const;
  Failure failure_of(const ChannelClosed& closed) const;
  void met(const TagMismatch& mismatch);
  bool finds_unclaimed();
  void fail_by_loss();
  void has_just_failed();
  [[noreturn]] void tell(const Error& error);
  Error error_for(const Request* request) const;

  const std::shared_ptr<Job> job_;
  const std::uint64_t id_, told_as_;  // told_as_: the communicator that fails with this one
  const std::uint64_t serial_;
  const Members members_;

  PlanCache plans_;
  CallLedger ledger_;
  const std::shared_ptr<FailureState> failure_;  // lanes have that of their communicator
  StallDetector stall_;
  std::chrono::milliseconds timeout_{0};  // of the calls that name none; 0: the job's
  std::uint32_t splits_ = 0;
  std::map<std::uint64_t, std::uint32_t> subgroups_;  // by key
  std::vector<PeerLink> links_;
  Workspace workspace_;
  DeviceRendezvous* const rendezvous_;  // nullptr: there is no device, or there are too many ranks
  std::unique_ptr<Staging> staging_;    // once a call has been staged
  DeviceHealth device_health_;
  bool was_driven_ = false;           // the progress thread has had calls of this group
  int driven_ = 0;                    // the progress thread's calls that are not over
  const Plan* ready_plan_ = nullptr;  // its channels are open and its workspace is there
  std::uint64_t ready_label_ = 0;     // the ledger knows that calls of that plan have it
  std::map<const Plan*, AtOnce> at_onces_;
  AtOnce* at_once_ = nullptr;  // of the ready plan, if it suits
  ShortTransfer short_;        // likewise, of a lane
  Request* current_ = nullptr;
  std::deque<Request*> queue_;
  std::uint64_t moves_ = 0;  // of operations that are over

  // A peer's channel has closed, and the control plane has until then to say why. Or a message of a later call has
  // come, and the peer has until then to say what it called at this one.
  struct CutOff {
    ChannelClosed closed;
    BackoffPolicy::Clock::time_point until;
    std::optional<bool> asked = {};  // the peer, what it has called; whether it had left the job then
    BackoffPolicy::Clock::time_point asked_at = {};
    std::optional<Failure> met = {};
  };
  std::optional<CutOff> cut_off_;

  std::optional<BackoffPolicy::Clock::time_point> given_up_at_;
  BackoffPolicy::Clock::time_point released_at_{};  // the last of what was given up

  PeerAnswers answers_{members_};
  std::map<std::pair<int, int>, std::shared_ptr<Group>> lanes_;  // by who sends and who receives
  std::vector<std::atomic<Group*>> lane_at_;                     // the same, by place_of_lane(); thread-safe
  int last_sender_ = 0;                                          // that probe() has found
  bool has_parted_ = false;
  std::shared_ptr<Group> self_;
};

}  // namespace tutti::internal
