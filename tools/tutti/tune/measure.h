// What a message and a reduction cost here, measured through the library itself, so that what the executor adds is in
// it.
//
// The time of arrival is half of a ping-pong: broadcasts of two ranks whose root is the one and the other in turn. The
// time that a message keeps a rank busy is what one more of many costs: broadcasts down a chain of two, cut into pieces
// (the gap g(m) of Kielmann, Bal, Verstoep 2000). Rounds go over all sizes by turns, and the median of each counts: the
// machine may be slower for a while.
#pragma once

#include <string>
#include <vector>

#include "bench/measure.h"
#include "schedule/cost.h"
#include "tutti/communicator.h"

namespace tutti::internal::tools {

// The table that communicators must have which are measured: it cuts as these measurements need it.
std::string probe_table();

// Each is made by the two ranks of `pair` together, and so is each round(), which takes a sample of everything. The
// pair must outlive it. What rank 0's gives counts.
class LinkProbe {
 public:
  explicit LinkProbe(Communicator& pair);
  void round();
  LinkCost result() const;

 private:
  Communicator& pair_;
  BenchMemory memory_;
  std::vector<std::vector<double>> one_, more_;  // samples by size: a message, one more in a stream
};

class ReduceProbe {  // on both ranks at once
 public:
  explicit ReduceProbe(Communicator& pair);
  void round();
  CostCurve result() const;

 private:
  Communicator& pair_;
  BenchMemory a_, b_, out_;
  std::vector<std::vector<double>> samples_;
};

// Mean microseconds of one of many barriers.
double sample_barrier(Communicator& world);

// us with three digits that count: there is more noise than that.
double in_three_digits(double us);

}  // namespace tutti::internal::tools
