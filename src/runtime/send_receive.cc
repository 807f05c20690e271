// Send and receive, which are transfers of the lane between two ranks; and groups of calls.
#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "runtime/call_group.h"
#include "runtime/call_terms.h"
#include "runtime/group.h"
#include "tutti/communicator.h"

namespace tutti {
namespace {

using internal::CallGroup;
using internal::CallSpec;
using internal::Group;
using internal::Terms;

constexpr int kTags = 65536;

CallSpec transfer(std::size_t count, DType dtype, const CallOptions& options) {
  return {.collective = Collective::transfer,
          .dtype = dtype,
          .order = options.order,
          .algorithm = options.algorithm,
          .count = count};
}

Terms with_tag(const CallOptions& options) {
  if (options.tag < 0 || options.tag >= kTags)
    throw Error(ErrorCode::invalid_argument,
                "CallOptions::tag is " + std::to_string(options.tag) + " but should be from 0 to 65535");
  Terms terms = internal::terms_of(options);
  terms.label = static_cast<std::uint64_t>(options.tag);
  return terms;
}

}  // namespace

void Communicator::send(ConstBuffer data, std::size_t count, DType dtype, int to, const CallOptions& options) {
  if (Group* const lane = group_->known_lane_to(to); lane != nullptr && lane->send_at_once(data, count, dtype, options))
    return;
  const CallSpec spec = transfer(count, dtype, options);
  if (to == rank()) return CallGroup::send_to_self(*group_, spec, data, with_tag(options), nullptr);
  group_->lane_to(to).run(spec, data, nullptr, with_tag(options));
}
void Communicator::receive(Buffer data, std::size_t count, DType dtype, int from, const CallOptions& options) {
  if (Group* const lane = group_->known_lane_from(from);
      lane != nullptr && lane->receive_at_once(data, count, dtype, options))
    return;
  const CallSpec spec = transfer(count, dtype, options);
  if (from == rank()) return CallGroup::receive_from_self(*group_, spec, data, with_tag(options), nullptr);
  group_->lane_from(from).run(spec, nullptr, data, with_tag(options));
}
Work Communicator::start_send(ConstBuffer data, std::size_t count, DType dtype, int to, const CallOptions& options) {
  const CallSpec spec = transfer(count, dtype, options);
  if (to != rank()) return Work(group_->lane_to(to).start(spec, data, nullptr, with_tag(options)));
  auto request = std::make_shared<internal::Request>();
  CallGroup::send_to_self(*group_, spec, data, with_tag(options), request);
  return Work(std::move(request));
}
Work Communicator::start_receive(Buffer data, std::size_t count, DType dtype, int from, const CallOptions& options) {
  const CallSpec spec = transfer(count, dtype, options);
  if (from != rank()) return Work(group_->lane_from(from).start(spec, nullptr, data, with_tag(options)));
  auto request = std::make_shared<internal::Request>();
  CallGroup::receive_from_self(*group_, spec, data, with_tag(options), request);
  return Work(std::move(request));
}

std::optional<int> Communicator::probe(std::chrono::milliseconds limit) {
  using Clock = internal::BackoffPolicy::Clock;
  if (limit.count() < 0)
    throw Error(ErrorCode::invalid_argument, "probe: the limit is " + std::to_string(limit.count()) + " ms");
  if (internal::is_grouping()) throw Error(ErrorCode::unsupported, "probe: it does not take part in a group of calls");
  constexpr std::chrono::milliseconds kLongest = std::chrono::hours(24 * 3650);
  return group_->probe(limit.count() == 0 ? Clock::time_point{} : Clock::now() + std::min(limit, kLongest));
}

// --- groups of calls ------------------------------------------------------------------------------------------------

void group_start() { CallGroup::start(); }
void group_end() { CallGroup::end(); }

GroupScope::GroupScope() : exceptions_(std::uncaught_exceptions()) { CallGroup::start(); }
GroupScope::~GroupScope() noexcept(false) {
  if (std::uncaught_exceptions() > exceptions_) {
    CallGroup::drop();
  } else {
    CallGroup::end();
  }
}

}  // namespace tutti
