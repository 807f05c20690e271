#include "control/dump_signal.h"

#include <signal.h>

#include <array>
#include <atomic>
#include <mutex>

#include "base/process_mutex.h"

namespace tutti::internal {
namespace {

// What a handler sees: it can find no object of a rank.
struct Taken {
  std::atomic<std::uint32_t> times{0};
  int users = 0;            // the process mutex guards this one
  struct sigaction before;  // written before the handler is there
};
constinit std::array<Taken, 65> taken{};  // by number

void count(int signal, siginfo_t* info, void* context) {
  Taken& one = taken[static_cast<std::size_t>(signal)];
  one.times.fetch_add(1, std::memory_order_relaxed);
  if ((one.before.sa_flags & SA_SIGINFO) != 0) {
    one.before.sa_sigaction(signal, info, context);
  } else if (one.before.sa_handler != SIG_DFL && one.before.sa_handler != SIG_IGN) {
    one.before.sa_handler(signal);
  }
}

}  // namespace

DumpSignal::DumpSignal(int signal) : signal_(signal > 0 && signal < static_cast<int>(taken.size()) ? signal : 0) {
  if (signal_ == 0) return;
  Taken& one = taken[static_cast<std::size_t>(signal_)];
  seen_ = one.times;
  const std::lock_guard lock(process_mutex(ProcessWide::dump_signals));
  if (one.users++ > 0) return;
  ::sigaction(signal_, nullptr, &one.before);
  struct sigaction ours {};
  ours.sa_sigaction = &count;
  ours.sa_flags = SA_SIGINFO | SA_RESTART;
  ::sigaction(signal_, &ours, nullptr);
}

// The program may have taken the signal meanwhile: then it keeps it.
DumpSignal::~DumpSignal() {
  if (signal_ == 0) return;
  Taken& one = taken[static_cast<std::size_t>(signal_)];
  const std::lock_guard lock(process_mutex(ProcessWide::dump_signals));
  if (--one.users > 0) return;
  struct sigaction now {};
  ::sigaction(signal_, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == &count) ::sigaction(signal_, &one.before, nullptr);
}

bool DumpSignal::came() {
  if (signal_ == 0) return false;
  const std::uint32_t times = taken[static_cast<std::size_t>(signal_)].times;
  const bool has_come = times != seen_;
  seen_ = times;
  return has_come;
}

}  // namespace tutti::internal
