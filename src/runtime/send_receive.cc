// Send and receive: transfers of the lane between two ranks.
#include <string>

#include "runtime/call_terms.h"
#include "runtime/group.h"
#include "tutti/communicator.h"

namespace tutti {
namespace {

using internal::CallSpec;
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
  terms.label = static_cast<std::uint16_t>(options.tag);
  return terms;
}

}  // namespace

void Communicator::send(ConstBuffer data, std::size_t count, DType dtype, int to, const CallOptions& options) {
  group_->lane_to(to).run(transfer(count, dtype, options), data, nullptr, with_tag(options));
}
void Communicator::receive(Buffer data, std::size_t count, DType dtype, int from, const CallOptions& options) {
  group_->lane_from(from).run(transfer(count, dtype, options), nullptr, data, with_tag(options));
}
Work Communicator::start_send(ConstBuffer data, std::size_t count, DType dtype, int to, const CallOptions& options) {
  return Work(group_->lane_to(to).start(transfer(count, dtype, options), data, nullptr, with_tag(options)));
}
Work Communicator::start_receive(Buffer data, std::size_t count, DType dtype, int from, const CallOptions& options) {
  return Work(group_->lane_from(from).start(transfer(count, dtype, options), nullptr, data, with_tag(options)));
}

}  // namespace tutti
