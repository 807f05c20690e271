// The plans of one communicator's calls.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>

#include "base/log.h"
#include "executor/plan.h"
#include "reduce/custom.h"
#include "schedule/layout.h"
#include "selection/choose.h"
#include "types/call.h"

namespace tutti::internal {

// Makes the plan of each kind of call once, and keeps it. Not thread-safe: the engine's lock is held.
class PlanCache {
 public:
  // cuts: long calls are cut into parts, so that those which pass through the host can overlap (all ranks alike).
  // `log` must outlive it.
  PlanCache(int rank, Layout layout, const ChoiceTable& table, const Host& host, bool cuts, const Log& log);

  // The algorithm of a call that names none. Throws Error{invalid_argument}.
  Algorithm choose(Collective collective, std::size_t count, DType dtype, Order order) const;

  // How a rank's buffers lie. in_place: as Cut::in_place; whatever else is in place has the plan of `usual`.
  enum class Buffers : std::uint8_t { usual, packed, in_place };

  // The plan of such a call, valid until clear(). Throws Error{invalid_argument}.
  const Plan& plan_for(const CallSpec& spec, Buffers buffers);
  // The same by one comparison where the last plan_for() was for such a call; else nullptr.
  const Plan* last_plan_for(const CallSpec& spec, Buffers buffers) const {
    return spec == last_spec_ && buffers == last_buffers_ ? last_ : nullptr;
  }

  // Calls of Op::custom say in their flags which operator they mean: kFirstCustom + its number, in the order in which
  // they were added, from 0. At most kMaxCustom.
  static constexpr std::size_t kFirstCustom = kFirstCustomCall, kMaxCustom = 200;
  void add(CustomOperator custom) { custom_.push_back(std::move(custom)); }
  std::size_t customs() const { return custom_.size(); }

  // There are so many that all should go before more are made; no call may use one then.
  bool is_full() const { return plans_[0].size() + plans_[1].size() + plans_[2].size() >= kMaxPlans; }
  void clear();

 private:
  static constexpr std::size_t kMaxPlans = 512;

  const CustomOperator* custom_of(const Call& call) const;
  std::size_t bytes_of(const Call& call) const;
  Call resolve(const CallSpec& spec) const;
  std::unique_ptr<Plan> make(const CallSpec& spec, const Call& call, Buffers buffers) const;

  const int rank_;
  const Layout layout_;
  const Chooser chooser_;
  const Host host_;
  const bool cuts_;
  const Log& log_;
  std::deque<CustomOperator> custom_;
  // By Buffers; of unequal rows, by these too. A plan of these is not the last_.
  std::map<std::pair<std::array<std::uint64_t, 2>, CallRows>, std::unique_ptr<Plan>> plans_[3];
  const Plan* last_ = nullptr;
  CallSpec last_spec_;  // that it is for
  Buffers last_buffers_ = Buffers::usual;
};

}  // namespace tutti::internal
