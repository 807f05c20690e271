#include "runtime/call_kinds.h"

#include <cstddef>

namespace tutti::internal {

const std::vector<CallKind> kCallKinds{
    {"barrier", [](Communicator& c, auto&) { c.barrier(); }},
    {"all_reduce", [](Communicator& c, auto& v) { c.all_reduce(v.data(), v.data(), 8, DType::int64, Op::sum); }},
    {"all_reduce, count", [](Communicator& c, auto& v) { c.all_reduce(v.data(), v.data(), 7, DType::int64, Op::sum); }},
    {"all_reduce, type", [](Communicator& c, auto& v) { c.all_reduce(v.data(), v.data(), 8, DType::uint64, Op::sum); }},
    {"all_reduce, operator",
     [](Communicator& c, auto& v) { c.all_reduce(v.data(), v.data(), 8, DType::int64, Op::max); }},
    {"all_reduce, order",
     [](Communicator& c, auto& v) {
       c.all_reduce(v.data(), v.data(), 8, DType::int64, Op::sum, {.order = Order::any});
     }},
    {"all_reduce, empty", [](Communicator& c, auto& v) { c.all_reduce(v.data(), v.data(), 0, DType::int64, Op::sum); }},
    {"reduce_scatter",
     [](Communicator& c, auto& v) { c.reduce_scatter(v.data(), v.data() + 100, 8, DType::int64, Op::sum); }},
    {"all_gather", [](Communicator& c, auto& v) { c.all_gather(v.data(), v.data() + 100, 8, DType::int64); }},
    {"broadcast of rank 0", [](Communicator& c, auto& v) { c.broadcast(v.data(), 8, DType::int64, 0); }, "broadcast"},
    {"broadcast of rank 1", [](Communicator& c, auto& v) { c.broadcast(v.data(), 8, DType::int64, 1); }, "broadcast",
     1},
    {"broadcast of the last", [](Communicator& c, auto& v) { c.broadcast(v.data(), 8, DType::int64, c.size() - 1); },
     "broadcast", kLastRank},
    {"broadcast of each rank's own", [](Communicator& c, auto& v) { c.broadcast(v.data(), 8, DType::int64, c.rank()); },
     "broadcast", kOwnRank},
    {"reduce to rank 0",
     [](Communicator& c, auto& v) { c.reduce(v.data(), v.data() + 100, 8, DType::int64, Op::sum, 0); }, "reduce"},
    {"reduce to each rank's own",
     [](Communicator& c, auto& v) { c.reduce(v.data(), v.data() + 100, 8, DType::int64, Op::sum, c.rank()); }, "reduce",
     kOwnRank},
    {"gather to rank 0", [](Communicator& c, auto& v) { c.gather(v.data(), v.data() + 100, 8, DType::int64, 0); },
     "gather"},
    {"gather to each rank's own",
     [](Communicator& c, auto& v) { c.gather(v.data(), v.data() + 100, 8, DType::int64, c.rank()); }, "gather",
     kOwnRank},
    {"scatter from rank 1", [](Communicator& c, auto& v) { c.scatter(v.data(), v.data() + 100, 8, DType::int64, 1); },
     "scatter", 1},
    {"scatter from each rank's own",
     [](Communicator& c, auto& v) { c.scatter(v.data(), v.data() + 100, 8, DType::int64, c.rank()); }, "scatter",
     kOwnRank},
    {"scan", [](Communicator& c, auto& v) { c.scan(v.data(), v.data() + 100, 8, DType::int64, Op::sum); }},
    {"exclusive_scan",
     [](Communicator& c, auto& v) { c.exclusive_scan(v.data(), v.data() + 100, 8, DType::int64, Op::sum); }},
    {"all_to_all", [](Communicator& c, auto& v) { c.all_to_all(v.data(), v.data() + 100, 8, DType::int64); }},
    {"all_to_all, in place", [](Communicator& c, auto& v) { c.all_to_all(v.data(), v.data(), 9, DType::int64); }},
    {"all_gather_v",
     [](Communicator& c, auto& v) {
       const std::vector<std::size_t> counts(static_cast<std::size_t>(c.size()), 8);
       c.all_gather_v(v.data(), v.data() + 100, {counts}, DType::int64);
     }},
    {"all_gather_v, other rows of the same length in all",
     [](Communicator& c, auto& v) {
       std::vector<std::size_t> counts(static_cast<std::size_t>(c.size()), 8);
       ++counts.front(), --counts.back();
       c.all_gather_v(v.data(), v.data() + 100, {counts}, DType::int64);
     }},
    {"all_to_all_v",
     [](Communicator& c, auto& v) {
       const std::vector<std::size_t> counts(static_cast<std::size_t>(c.size()), 8);
       c.all_to_all_v(v.data(), {counts}, v.data() + 100, {counts}, DType::int64);
     }},
    {"broadcast, count", [](Communicator& c, auto& v) { c.broadcast(v.data(), 9, DType::int64, 0); }},
    {"no call", [](Communicator&, auto&) {}},
};

}  // namespace tutti::internal
