#include "run/guardian.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <vector>

#include "command.h"
#include "run/attempt.h"
#include "run/descendants.h"
#include "run/meet_nodes.h"
#include "run/output_writer.h"
#include "run/rank_output.h"
#include "run/rank_reports.h"

namespace tutti::internal::tools {
namespace {

int signals_of(const sigset_t& awaited) {
  const int signals = signalfd(-1, &awaited, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals >= 0) return signals;
  throw std::runtime_error(fmt::format("cannot watch the ranks: {}; raise ulimit -n", strerror(errno)));
}

int attempt_all(const Guardian& guardian) {
  while (true) {
    Attempt attempt(guardian);
    if (const auto status = attempt.run()) return *status;
  }
}

}  // namespace

int guard(const Job& job, const Plan& plan, int launcher, const sigset_t& awaited, const sigset_t& mask) try {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const sighandler_t on_broken_pipe = ::signal(SIGPIPE, SIG_IGN);
  RankOutput output(job.name, job.tag);
  const RankReports reports(plan.reports);
  if (!reports) {
    throw std::runtime_error(
        fmt::format("cannot make a socket for what ranks report: {}; raise ulimit -n", strerror(errno)));
  }
  const std::unique_ptr<Nodes> nodes = meet_nodes(job);
  return attempt_all({job, plan, mask, launcher, signals_of(awaited), on_broken_pipe, output, reports, *nodes});
} catch (const std::exception& error) {
  end_descendants();
  say_at_the_end(fmt::format("{}: {}\n", job.name, in_words(error)));
  return 1;
}

}  // namespace tutti::internal::tools
