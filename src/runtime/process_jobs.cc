#include "runtime/process_jobs.h"

#include <pthread.h>

#include <cstdlib>
#include <exception>
#include <utility>

#include "base/process_mutex.h"

namespace tutti::internal {

ProcessJobs& ProcessJobs::here() {
  static ProcessJobs& jobs = *new ProcessJobs;
  return jobs;
}

ProcessJobs::ProcessJobs() {
  process_mutex(ProcessWide::segments);  // first, as jobs may end in the handler below
  ::pthread_atfork([] { here().before_fork(); }, [] { here().after_fork_in_parent(); },
                   [] { here().after_fork_in_child(); });
  std::atexit([] { here().leave_all(); });
  std::at_quick_exit([] { here().leave_all(); });
}

void ProcessJobs::add(const std::shared_ptr<ProcessJob>& job) {
  const std::lock_guard lock(mutex_);
  std::erase_if(jobs_, [](const std::weak_ptr<ProcessJob>& entry) { return entry.expired(); });
  jobs_.push_back(job);
  forking_.reserve(jobs_.size());  // a fork should find room
}

// Held from here to behind the fork, so that the child finds these lists whole.
void ProcessJobs::before_fork() {
  mutex_.lock();
  for (const auto& entry : jobs_)
    if (auto job = entry.lock()) forking_.push_back(std::move(job));
  for (const auto& job : forking_) job->before_fork();
}

void ProcessJobs::after_fork_in_parent() {
  for (const auto& job : forking_) job->after_fork_in_parent();
  const auto held = std::exchange(forking_, {});
  mutex_.unlock();
}  // a job may end here

void ProcessJobs::after_fork_in_child() {
  for (const auto& job : forking_) job->after_fork_in_child();
  for (auto& job : std::exchange(forking_, {})) parents_.push_back(std::move(job));
  jobs_.clear();
  mutex_.unlock();
}

void ProcessJobs::leave_all() {
  std::vector<std::shared_ptr<ProcessJob>> jobs;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& entry : jobs_)
      if (auto job = entry.lock()) jobs.push_back(std::move(job));
  }
  for (const auto& job : jobs) try {
      job->leave();
    } catch (const std::exception&) {  // the process is on its way out: nobody is there to hear it
    }
}

}  // namespace tutti::internal
