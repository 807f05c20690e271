#include "runtime/engine.h"

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include "reduce/float_environment.h"
#include "tutti/error.h"

namespace tutti::internal {
namespace {

constexpr std::chrono::milliseconds kLongestSleep{20};
constexpr std::chrono::microseconds kBetweenLooksAtDevices{50};
constexpr std::chrono::milliseconds kLongestWaitForLock{200}, kLongestWaitForCalls{1000};
constexpr int kMaxYields = 1000;

}  // namespace

void Engine::use(std::vector<Transport*> transports, bool wakes_sleepers) {
  transports_ = std::move(transports);
  wakes_sleepers_ = wakes_sleepers;
  const auto lender = std::ranges::find_if(transports_, &Transport::has_turns);
  lender_ = lender == transports_.end() ? nullptr : *lender;
}

// The thread that has just released a mutex is usually the quickest to take it again. So a thread that was served last
// stands back for a moment and lets another one be served.
void Engine::Lock::queue() {
  engine_.refuse_if_forked();
  const std::uint64_t turn = engine_.served_.load(std::memory_order_relaxed);
  for (int i = 0; i < kMaxYields && engine_.wanting_.load(std::memory_order_relaxed) > 0 &&
                  engine_.served_.load(std::memory_order_relaxed) == turn;
       ++i)
    ::sched_yield();
  engine_.wanting_.fetch_add(1, std::memory_order_relaxed);
  engine_.mutex_.lock();
  engine_.wanting_.fetch_sub(1, std::memory_order_relaxed);
  engine_.served_.fetch_add(1, std::memory_order_relaxed);
}

void Engine::watch_driven(std::chrono::steady_clock::time_point now) {
  for (JobMember* member : members_) member->watch_driven(now);
}

void Engine::watch_processor(const Look& look) {
  if (wakes_sleepers_) crowding_.note_yield(look);
  if (!crowding_.wants_sample(look)) return;
  rusage usage{};
  if (::getrusage(RUSAGE_THREAD, &usage) != 0) return;
  crowding_.take(
      {.switches = static_cast<std::uint64_t>(usage.ru_nivcsw), .moves = moves(), .thread = std::this_thread::get_id()},
      look);
}

void Engine::yield() {
  ::sched_yield();
  crowding_.yielded();
}

std::uint64_t Engine::moves() const {
  std::uint64_t sum = 0;
  for (const JobMember* member : members_) sum += member->moves();
  return sum;
}

// --- sleeping -------------------------------------------------------------------------------------------------------

// One thread sleeps for all: the others wait until it wakes, for whatever the news, and one of them takes its place.
void Engine::sleep(Lock& lock, const std::function<bool()>& is_over, std::chrono::nanoseconds longest) {
  longest = std::clamp<std::chrono::nanoseconds>(longest, std::chrono::microseconds(1), kLongestSleep);
  if (asleep_) {
    const std::uint64_t seen = wakes_;
    lock.release();
    {
      std::unique_lock news(news_mutex_);
      news_.wait_for(news, longest, [&] { return wakes_ != seen; });
    }
    lock.take();
    return;
  }
  const Asleep asleep(*this);
  const std::uint64_t moved_before = moves();
  advance_all();
  if (is_over() || moves() != moved_before) return;
  if (on_devices_ > 0) longest = std::min<std::chrono::nanoseconds>(longest, kBetweenLooksAtDevices);
  lock.release();
  sleeper_.sleep(std::chrono::ceil<std::chrono::microseconds>(longest));
  lock.take();
}

Engine::Asleep::Asleep(Engine& engine) : engine_(engine) {
  engine_.asleep_ = true;
  for (Transport* transport : engine_.transports_) transport->before_sleep();
}

Engine::Asleep::~Asleep() {
  for (Transport* transport : engine_.transports_) transport->after_sleep();
  engine_.asleep_ = false;
  {
    const std::lock_guard news(engine_.news_mutex_);
    ++engine_.wakes_;
  }
  engine_.news_.notify_all();
}

// --- the end of the process, and forking ----------------------------------------------------------------------------

bool Engine::lock_within(std::chrono::milliseconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  wanting_.fetch_add(1, std::memory_order_relaxed);
  mutex_.share();
  bool locked = mutex_.try_lock();
  for (; !locked && std::chrono::steady_clock::now() < until; locked = mutex_.try_lock())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  wanting_.fetch_sub(1, std::memory_order_relaxed);
  return locked;
}

void Engine::stop(const std::function<void(JobMember&)>& finish) {
  if (!lock_within(kLongestWaitForLock)) return;
  const FloatEnvironment environment;
  const auto until = std::chrono::steady_clock::now() + kLongestWaitForCalls;
  while (std::ranges::any_of(members_, &JobMember::is_busy) && std::chrono::steady_clock::now() < until) {
    advance_all();
    ::sched_yield();
  }
  for (JobMember* member : members_) finish(*member);
  mutex_.unlock();
}

void Engine::set_forked() {
  is_forked_ = true;
  wanting_.store(1, std::memory_order_relaxed);
}

void Engine::refuse_if_forked() const {
  if (is_forked_)
    throw Error(ErrorCode::unsupported,
                "rank " + std::to_string(rank_) +
                    ": this process was forked from the one that joined as this rank; "
                    "only that one can make calls. Let the child join a job of its own, or exec",
                rank_, -1);
}

}  // namespace tutti::internal
