// Every algorithm as a function: collective::algorithm, defined in <collective>/<algorithm>.cc, where its idea and cost
// are. Each returns rank's schedule for the layout, and throws Error{invalid_argument} where it does not take the
// layout.
#pragma once

#include "collectives/message.h"
#include "schedule/layout.h"
#include "schedule/schedule.h"

namespace tutti {

namespace all_reduce {
Schedule one_shot(int rank, const Layout& layout, const Message& message);
Schedule two_shot(int rank, const Layout& layout, const Message& message);
Schedule sliced_tree(int rank, const Layout& layout, const Message& message);
Schedule recursive_doubling(int rank, const Layout& layout, const Message& message);
Schedule binomial_tree(int rank, const Layout& layout, const Message& message);
Schedule ring(int rank, const Layout& layout, const Message& message);
Schedule hierarchical(int rank, const Layout& layout, const Message& message);
}  // namespace all_reduce

namespace reduce_scatter {
Schedule one_shot(int rank, const Layout& layout, const Message& message);
Schedule sliced_tree(int rank, const Layout& layout, const Message& message);
Schedule ring(int rank, const Layout& layout, const Message& message);
Schedule hierarchical(int rank, const Layout& layout, const Message& message);
}  // namespace reduce_scatter

namespace all_gather {
Schedule one_shot(int rank, const Layout& layout, const Message& message);
Schedule ring(int rank, const Layout& layout, const Message& message);
Schedule hierarchical(int rank, const Layout& layout, const Message& message);
}  // namespace all_gather

namespace broadcast {
Schedule binomial_tree(int rank, const Layout& layout, const Message& message);
Schedule chain(int rank, const Layout& layout, const Message& message);
Schedule hierarchical(int rank, const Layout& layout, const Message& message);
}  // namespace broadcast

namespace barrier {
Schedule dissemination(int rank, const Layout& layout, const Message& message);
}  // namespace barrier

}  // namespace tutti
