// The calls whose rows are not all of one length.
#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "runtime/call_terms.h"
#include "runtime/group.h"
#include "tutti/communicator.h"
#include "types/collective.h"

namespace tutti {

using internal::BufferRows;
using internal::CallRows;
using internal::CallSpec;
using internal::Group;

namespace {

constexpr std::size_t kMost = std::size_t{1} << 48;  // elements, as of other calls

// Of one collective, on one rank.
class RowsCall {
 public:
  RowsCall(const Group& group, Collective collective, DType dtype, Op op, int root, const CallOptions& options)
      : rank_(group.rank()), size_(group.size()) {
    spec_ = {.collective = collective,
             .dtype = dtype,
             .op = op,
             .order = options.order,
             .algorithm = options.algorithm,
             .flags = internal::kUnequalRows,
             .root = root,
             .rows = &rows_};
    check(spec_, size_);
  }
  RowsCall(const RowsCall&) = delete;
  RowsCall& operator=(const RowsCall&) = delete;

  const CallSpec& spec() const { return spec_; }

  void set_input(const UnequalRows& rows) { rows_.input = checked(rows, "input"); }
  void set_output(const UnequalRows& rows) {
    rows_.output = checked(rows, "output");
    refuse_overlap(rows_.output);
  }
  void set_input(std::size_t count) { rows_.input = one(count); }
  void set_output(std::size_t count) { rows_.output = one(count); }
  bool is_root() const { return rank_ == spec_.root; }

  // The one row that both buffers have is as long in both. All rows together are what every rank knows of them.
  void finish() {
    const internal::Distribution holds(spec_.collective, size_, spec_.root);
    const std::size_t total = std::max(rows_.input.total(), rows_.output.total());
    if (total >= kMost) refuse("there must be fewer than 2^48 elements in all rows");
    if (holds.traits.shows_all_rows()) spec_.count = total;
    const std::size_t in = length_of_own(rows_.input), out = length_of_own(rows_.output);
    if (!rows_.input.counts.empty() && !rows_.output.counts.empty() && in != out)
      refuse("the row from rank " + std::to_string(rank_) + " to itself has " + std::to_string(in) +
             " elements in the input, and " + std::to_string(out) + " in the output");
  }
  std::size_t length_of_own(const BufferRows& rows) const {
    return rows.counts.empty() ? 0 : rows.counts[rows.counts.size() == 1 ? 0 : static_cast<std::size_t>(rank_)];
  }
  const CallRows& rows() const { return rows_; }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(ErrorCode::invalid_argument, std::string(to_string(spec_.collective)) + "_v: " + why);
  }

  static BufferRows one(std::size_t count) { return {{count}, {0}}; }

  BufferRows checked(const UnequalRows& rows, const std::string& which) const {
    const auto ranks = static_cast<std::size_t>(size_);
    const auto expect = [&](std::size_t found, const std::string& what) {
      if (found != ranks)
        refuse(which + " has " + std::to_string(found) + " " + what + " for " + std::to_string(ranks) + " ranks");
    };
    expect(rows.counts.size(), "counts");
    if (!rows.displacements.empty()) expect(rows.displacements.size(), "displacements");
    BufferRows made{{rows.counts.begin(), rows.counts.end()}, {rows.displacements.begin(), rows.displacements.end()}};
    const auto is_large = [](std::size_t number) { return number >= kMost; };
    if (std::ranges::any_of(made.counts, is_large) || std::ranges::any_of(made.begins, is_large))
      refuse(which + " has a count or a displacement of 2^48 elements or more");
    if (made.begins.empty()) {
      made.begins.resize(ranks);
      std::exclusive_scan(made.counts.begin(), made.counts.end(), made.begins.begin(), std::size_t{0});
    }
    return made;
  }

  void refuse_overlap(const BufferRows& rows) const {
    std::vector<std::pair<std::size_t, std::size_t>> sorted;  // where rows begin, and end
    for (std::size_t i = 0; i < rows.counts.size(); ++i)
      if (rows.counts[i] > 0) sorted.emplace_back(rows.begins[i], rows.begins[i] + rows.counts[i]);
    std::ranges::sort(sorted);
    for (std::size_t i = 1; i < sorted.size(); ++i)
      if (sorted[i].first < sorted[i - 1].second)
        refuse("two rows of the output have element " + std::to_string(sorted[i].first));
  }

  const int rank_, size_;
  CallRows rows_;
  CallSpec spec_;
};

void set_all_gather(RowsCall& call, const UnequalRows& rows) {
  call.set_output(rows);
  call.set_input(call.length_of_own(call.rows().output));
  call.finish();
}
void set_reduce_scatter(RowsCall& call, const UnequalRows& rows) {
  call.set_input(rows);
  call.set_output(call.length_of_own(call.rows().input));
  call.finish();
}
void set_gather(RowsCall& call, std::size_t count, const UnequalRows& rows) {
  call.set_input(count);
  if (call.is_root()) call.set_output(rows);
  call.finish();
}
void set_scatter(RowsCall& call, const UnequalRows& rows, std::size_t count) {
  call.set_output(count);
  if (call.is_root()) call.set_input(rows);
  call.finish();
}
void set_all_to_all(RowsCall& call, const UnequalRows& in_rows, const UnequalRows& out_rows) {
  call.set_input(in_rows);
  call.set_output(out_rows);
  call.finish();
}

}  // namespace

void Communicator::all_gather_v(ConstBuffer in, Buffer out, const UnequalRows& rows, DType dtype,
                                const CallOptions& options) {
  RowsCall call(*group_, Collective::all_gather, dtype, Op::sum, 0, options);
  set_all_gather(call, rows);
  group_->run(call.spec(), in, out, internal::terms_of(options));
}
void Communicator::reduce_scatter_v(ConstBuffer in, const UnequalRows& rows, Buffer out, DType dtype, Op op,
                                    const CallOptions& options) {
  RowsCall call(*group_, Collective::reduce_scatter, dtype, op, 0, options);
  set_reduce_scatter(call, rows);
  group_->run(call.spec(), in, out, internal::terms_of(options));
}
void Communicator::gather_v(ConstBuffer in, std::size_t count, Buffer out, const UnequalRows& rows, DType dtype,
                            int root, const CallOptions& options) {
  RowsCall call(*group_, Collective::gather, dtype, Op::sum, root, options);
  set_gather(call, count, rows);
  group_->run(call.spec(), in, out, internal::terms_of(options));
}
void Communicator::scatter_v(ConstBuffer in, const UnequalRows& rows, Buffer out, std::size_t count, DType dtype,
                             int root, const CallOptions& options) {
  RowsCall call(*group_, Collective::scatter, dtype, Op::sum, root, options);
  set_scatter(call, rows, count);
  group_->run(call.spec(), in, out, internal::terms_of(options));
}
void Communicator::all_to_all_v(ConstBuffer in, const UnequalRows& in_rows, Buffer out, const UnequalRows& out_rows,
                                DType dtype, const CallOptions& options) {
  RowsCall call(*group_, Collective::all_to_all, dtype, Op::sum, 0, options);
  set_all_to_all(call, in_rows, out_rows);
  group_->run(call.spec(), in, out, internal::terms_of(options));
}

Work Communicator::start_all_gather_v(ConstBuffer in, Buffer out, const UnequalRows& rows, DType dtype,
                                      const CallOptions& options) {
  RowsCall call(*group_, Collective::all_gather, dtype, Op::sum, 0, options);
  set_all_gather(call, rows);
  return Work(group_->start(call.spec(), in, out, internal::terms_of(options)));
}
Work Communicator::start_reduce_scatter_v(ConstBuffer in, const UnequalRows& rows, Buffer out, DType dtype, Op op,
                                          const CallOptions& options) {
  RowsCall call(*group_, Collective::reduce_scatter, dtype, op, 0, options);
  set_reduce_scatter(call, rows);
  return Work(group_->start(call.spec(), in, out, internal::terms_of(options)));
}
Work Communicator::start_gather_v(ConstBuffer in, std::size_t count, Buffer out, const UnequalRows& rows, DType dtype,
                                  int root, const CallOptions& options) {
  RowsCall call(*group_, Collective::gather, dtype, Op::sum, root, options);
  set_gather(call, count, rows);
  return Work(group_->start(call.spec(), in, out, internal::terms_of(options)));
}
Work Communicator::start_scatter_v(ConstBuffer in, const UnequalRows& rows, Buffer out, std::size_t count, DType dtype,
                                   int root, const CallOptions& options) {
  RowsCall call(*group_, Collective::scatter, dtype, Op::sum, root, options);
  set_scatter(call, rows, count);
  return Work(group_->start(call.spec(), in, out, internal::terms_of(options)));
}
Work Communicator::start_all_to_all_v(ConstBuffer in, const UnequalRows& in_rows, Buffer out,
                                      const UnequalRows& out_rows, DType dtype, const CallOptions& options) {
  RowsCall call(*group_, Collective::all_to_all, dtype, Op::sum, 0, options);
  set_all_to_all(call, in_rows, out_rows);
  return Work(group_->start(call.spec(), in, out, internal::terms_of(options)));
}

}  // namespace tutti
