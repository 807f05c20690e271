// What a message and a reduction cost. The parameters are functions of the size, as in
// PLogP (Kielmann, Bal, Verstoep 2000): for every kind of link the time until a message has arrived, and the time that
// it keeps either end busy, which is what a rank with several messages pays for each. A straight line of each is
// Hockney's alpha and beta, with the reduction's gamma (Thakur, Rabenseifner, Gropp 2005).
#pragma once

#include <vector>

namespace tutti::internal {

// Microseconds by size: straight between points, of ascending sizes; constant before the first; behind the last as
// steep as between the last two. No point: 0.
struct CostCurve {
  struct Point {
    double bytes = 0, us = 0;
    friend bool operator==(const Point&, const Point&) = default;
  };
  std::vector<Point> points;

  double at(double bytes) const;
  static CostCurve line(double us, double us_per_byte) { return {{{0, us}, {1 << 20, us + us_per_byte * (1 << 20)}}}; }
  friend bool operator==(const CostCurve&, const CostCurve&) = default;
};

struct LinkCost {
  CostCurve arrival;       // from where the sender turns to the message until it has arrived
  CostCurve busy;          // that the sender, and again the receiver, can do nothing else
  bool in_pieces = false;  // what has come of a message can be combined before the rest is there
  double switch_us = 0;    // from one rank that waits for such a message to another, where ranks share a core

  // Half of the way is the sender's work, half the receiver's.
  static LinkCost line(double us, double us_per_byte, bool in_pieces) {
    return {CostCurve::line(us, us_per_byte), CostCurve::line(us / 2, us_per_byte / 2), in_pieces};
  }
  friend bool operator==(const LinkCost&, const LinkCost&) = default;
};

struct CostModel {
  LinkCost local = LinkCost::line(0.1, 1e-4, true);  // between ranks that share memory
  LinkCost remote = LinkCost::line(5, 8e-4, false);  // between hosts
  CostCurve reduce = CostCurve::line(0, 5e-5);       // by the bytes of all sources together
  int cores = 0;                                     // of each host; 0: as many as ranks
  friend bool operator==(const CostModel&, const CostModel&) = default;
};

}  // namespace tutti::internal
