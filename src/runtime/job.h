// A rank's membership in a job: what it knows of the other ranks, and what its communicators have in common.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "control/control.h"
#include "control/join_job.h"
#include "executor/device_rendezvous.h"
#include "executor/plan.h"
#include "runtime/engine.h"
#include "runtime/notices.h"
#include "runtime/process_jobs.h"
#include "runtime/progress_thread.h"
#include "runtime/recorder.h"
#include "runtime/transports.h"
#include "selection/choose.h"
#include "transport/inproc/hub.h"
#include "tutti/settings.h"
#include "tutti/store.h"

namespace tutti::internal {

class Job final : public ProcessJob {
 public:
  // Blocks until all ranks have joined. `hub` makes it a job of threads over inproc. Throws Error.
  // `rendezvous` says that all ranks are threads of this process, to which it is given.
  static std::shared_ptr<Job> join(const Settings& settings, Store* store, std::shared_ptr<inproc::Hub> hub = nullptr,
                                   std::shared_ptr<DeviceRendezvous> rendezvous = nullptr,
                                   std::optional<Appointment> appointment = {});
  ~Job() override;

  int rank() const { return settings_.rank; }
  int size() const { return settings_.size; }
  const Settings& settings() const { return settings_; }
  bool has_timeout_of_env() const { return has_timeout_of_env_; }  // Settings::timeout is what TUTTI_TIMEOUT says
  const Log& log() const { return log_; }
  const ChoiceTable& table() const { return table_; }  // rank 0's, the same on every rank
  const Host& host() const { return host_; }
  Control& control() { return *control_; }
  Engine& engine() { return engine_; }
  Notices& notices() { return notices_; }
  Transports& transports() { return transports_; }
  Recorder& recorder() { return recorder_; }
  int host_of(int rank) const { return transports_.hosts()[rank]; }
  std::unique_ptr<Channel> open(std::uint64_t communicator, int peer) {
    return transports_.open(*control_, communicator, peer);
  }

  // Under the engine's lock. A member hears at once what has come before it was made.
  void add(JobMember& member);
  void remove(JobMember& member);

  // Whether this rank, and whether any rank of the job, could come by device memory.
  bool sees_gpus() const { return sees_gpus_; }
  bool has_gpus() const { return has_gpus_; }
  // Whether a call's copies are put on its device when the call is made, to wait there for ranks that come later. Not
  // if all ranks are threads of this process, because they share its devices; not if there is only one rank; and not if
  // CUDA was told to wait for each launch.
  bool goes_ahead() const { return goes_ahead_; }
  // Where ranks with device memory meet; nullptr if there can be no such memory, or if other processes are part of the
  // job.
  DeviceRendezvous* device_rendezvous() const {
    return sees_gpus_ && (is_threads_ || size() == 1) ? rendezvous_.get() : nullptr;
  }
  // Does nothing where there is one. Throws Error{system}. Under the engine's lock.
  void make_progress_thread();
  ProgressThread& progress_thread() { return *progress_thread_; }

  // --- ProcessJob
  void leave() override;
  void before_fork() override { notices_.before_fork(); }
  void after_fork_in_parent() override { notices_.after_fork_in_parent(); }
  void after_fork_in_child() override;

 private:
  Job(const Settings& settings, std::shared_ptr<inproc::Hub> hub, std::shared_ptr<DeviceRendezvous> rendezvous);
  void enter();
  void log_decisions() const;

  Settings settings_;
  const Log log_{settings_};
  ChoiceTable table_;
  bool is_own_table_ = false;  // and not the built-in one
  bool sees_gpus_ = false, has_gpus_ = false;
  const bool has_timeout_of_env_, is_threads_, goes_ahead_;
  const std::shared_ptr<DeviceRendezvous> rendezvous_;
  Host host_;

  Engine engine_;
  Transports transports_;
  Notices notices_;
  Recorder recorder_;
  std::unique_ptr<Control> control_;  // behind the above: its thread calls into them
  std::unique_ptr<ProgressThread> progress_thread_;
};

}  // namespace tutti::internal
