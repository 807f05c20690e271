// What every algorithm of a collective would cost, by its schedules and the parameters of a table.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "collectives/catalogue.h"
#include "schedule/cost.h"
#include "schedule/layout.h"
#include "selection/choose.h"

namespace tutti::internal::tools {

// A call of float32, and who makes it.
struct Question {
  Collective collective = Collective::all_reduce;
  Layout layout;
  std::size_t bytes = 0;  // of the whole message
  Order order = Order::canonical;
  // The layout's hosts are ranks of one machine that reach each other over TCP: they share its cores.
  bool one_machine = false;
};

struct Candidate {
  const AlgorithmEntry* entry;
  int chunks = 1;
  std::optional<Cost> cost;  // nothing: it is not allowed
  std::string why_not;
};

// Why the algorithm may not answer the question; empty: it may.
std::string objection_to(const AlgorithmEntry& entry, const Question& question);

// The price of an algorithm that may. Throws Error{invalid_argument} where it does not take the layout.
Cost price_of(const AlgorithmEntry& entry, int chunks, const Question& question, const CostModel& model);

// All of the catalogue that are for the collective, with the chunks that the chooser gives them; the cheapest first,
// those that are not allowed last.
std::vector<Candidate> candidates(const Question& question, const internal::Chooser& chooser, const CostModel& model);

}  // namespace tutti::internal::tools
