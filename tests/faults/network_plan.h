// What happens to the network between the two hosts of a job, drawn from a seed.
#pragma once

#include "faults/fault_plan.h"

namespace tutti::internal {

enum class NetworkCut {
  down,     // the interface of `host` is
  lost,     // what either host sends is
  one_way,  // what `host` sends is
};

struct NetworkPlan {
  FaultPlan job;  // its blow is dealt to a rank that is there when the network has not been missed
  NetworkCut cut;
  int host;
  std::chrono::milliseconds at, lasts;  // 0: for good

  static NetworkPlan draw(unsigned seed);

  // Nobody may notice.
  bool is_short() const { return lasts.count() > 0 && lasts <= 35 * job.silence / 100; }
  bool is_long() const { return lasts.count() == 0 || lasts >= 5 * job.silence / 2; }  // all must notice
  bool goes_on_at(int host) const;  // the ranks of that host are a majority of the job's, or half with the lowest
  std::string ranks_at(int host) const;
  std::string text() const;
};

}  // namespace tutti::internal
