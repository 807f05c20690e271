// How a communicator's later calls are done: the algorithm and the order.
#include <optional>
#include <string>

#include "c/handles.h"

using namespace tutti;
using namespace tutti::internal::c_api;

tutti_result_t tutti_comm_set_algorithm(tutti_comm_t comm, const char* algorithm) {
  constexpr char kHere[] = "tutti_comm_set_algorithm";
  return guarded([&] {
    tutti_comm& on = in_use(kHere, comm);
    const std::optional<Algorithm> named = algorithm == nullptr ? Algorithm::automatic : parse_algorithm(algorithm);
    if (!named)
      refuse(ErrorCode::invalid_argument, std::string(kHere) + ": there is no algorithm \"" + algorithm +
                                              "\"; `tutti plan --list` prints those that there are");
    on.algorithm = *named;
  });
}

tutti_result_t tutti_comm_set_order(tutti_comm_t comm, int order) {
  constexpr char kHere[] = "tutti_comm_set_order";
  return guarded([&] {
    tutti_comm& on = in_use(kHere, comm);
    if (order != TUTTI_ORDER_CANONICAL && order != TUTTI_ORDER_ANY)
      refuse(ErrorCode::invalid_argument,
             std::string(kHere) + ": order is " + std::to_string(order) + " but should be one of enum tutti_order");
    on.order = static_cast<Order>(order);
  });
}

tutti_result_t tutti_comm_choose(tutti_comm_t comm, const char* collective, size_t count, tutti_dtype_t dtype,
                                 const char** algorithm) {
  constexpr char kHere[] = "tutti_comm_choose";
  return guarded([&] {
    const char*& to = there(kHere, algorithm, "algorithm");
    tutti_comm& on = in_use(kHere, comm);
    const std::optional<Collective> named = parse_collective(&there(kHere, collective, "collective"));
    if (!named)
      refuse(ErrorCode::invalid_argument, std::string(kHere) + ": there is no collective \"" + collective + "\"");
    const DType type = known_dtype(kHere, dtype);
    to = to_string(on.world.choose(*named, count, type, on.order)).data();  // of a literal: it ends with a zero
  });
}
