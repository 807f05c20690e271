// How a program gets communicators: now, or when its group of calls ends.
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "c/config.h"
#include "c/handles.h"
#include "c/unique_id.h"
#include "control/env.h"
#include "control/validate.h"
#include "runtime/call_group.h"
#include "runtime/join_by_appointment.h"
#include "tutti/communicator.h"

namespace {

using namespace tutti;
using namespace tutti::internal::c_api;
using internal::CallGroup;

std::unique_ptr<tutti_comm> make(Communicator world, Order order, Algorithm algorithm = Algorithm::automatic) {
  const int rank = world.rank(), size = world.size();
  return std::make_unique<tutti_comm>(
      tutti_comm{.world = std::move(world), .order = order, .algorithm = algorithm, .rank = rank, .size = size});
}

// `body` makes the communicator.
template <class Body>
class KeptJoin final : public internal::GroupedJoin {
 public:
  KeptJoin(tutti_comm_t& to, const tutti_comm* follows, Body body)
      : to_(to), follows_(follows), body_(std::move(body)) {}
  void join() override { made_ = body_(); }
  void hand_over() noexcept override { to_ = made_.release(); }
  const void* follows() const override { return follows_; }

 private:
  tutti_comm_t& to_;
  const tutti_comm* follows_;
  Body body_;
  std::unique_ptr<tutti_comm> made_;
};

// `follows`: the communicator that all ranks of the new one have already, or nullptr.
template <class Body>
void join_or_keep(tutti_comm_t& to, const tutti_comm* follows, Body body) {
  if (internal::is_grouping()) return CallGroup::add(std::make_unique<KeptJoin<Body>>(to, follows, std::move(body)));
  to = body().release();
}

// As the function of that name is asked to. What is wrong is found before anything of the other ranks is touched.
Config config_for(const char* function, int nranks, int rank, const tutti_config_t* config) {
  Config read = read_config(function, config, internal::tuning_from_env());
  read.settings.rank = rank;
  read.settings.size = nranks;
  internal::validate(read.settings);
  return read;
}

}  // namespace

tutti_result_t tutti_get_unique_id(tutti_unique_id* id) {
  return guarded([&] { there("tutti_get_unique_id", id, "id") = make_unique_id(internal::tuning_from_env()); });
}

tutti_result_t tutti_comm_init_rank(tutti_comm_t* comm, int nranks, tutti_unique_id id, int rank) {
  return tutti_comm_init_rank_config(comm, nranks, id, rank, nullptr);
}

tutti_result_t tutti_comm_init_rank_config(tutti_comm_t* comm, int nranks, tutti_unique_id id, int rank,
                                           const tutti_config_t* config) {
  constexpr char kHere[] = "tutti_comm_init_rank";
  return guarded([&] {
    tutti_comm_t& made = cleared(kHere, comm, "comm");
    Config read = config_for(kHere, nranks, rank, config);  // before the id is used up
    join_or_keep(made, nullptr, [read = std::move(read), appointment = appointment_of(id, rank)]() mutable {
      return make(internal::JoinByAppointment::join(read.settings, std::move(appointment)), read.order);
    });
  });
}

tutti_result_t tutti_comm_init_env(tutti_comm_t* comm) { return tutti_comm_init_env_config(comm, nullptr); }

tutti_result_t tutti_comm_init_env_config(tutti_comm_t* comm, const tutti_config_t* config) {
  constexpr char kHere[] = "tutti_comm_init_env";
  return guarded([&] {
    tutti_comm_t& made = cleared(kHere, comm, "comm");
    join_or_keep(made, nullptr, [read = read_config(kHere, config, Settings::from_env())] {
      return make(Communicator::join(read.settings), read.order);
    });
  });
}

tutti_result_t tutti_comm_init_store(tutti_comm_t* comm, int nranks, int rank, tutti_store_t store,
                                     const tutti_config_t* config) {
  constexpr char kHere[] = "tutti_comm_init_store";
  return guarded([&] {
    tutti_comm_t& made = cleared(kHere, comm, "comm");
    if (store.set == nullptr) refuse_null(kHere, "store.set");
    if (store.get == nullptr) refuse_null(kHere, "store.get");
    join_or_keep(made, nullptr, [read = config_for(kHere, nranks, rank, config), store] {
      CallbackStore callbacks(store);
      return make(Communicator::join(read.settings, callbacks), read.order);
    });
  });
}

tutti_result_t tutti_comm_split(tutti_comm_t comm, int color, int key, tutti_comm_t* part) {
  return guarded([&] {
    tutti_comm_t& made = cleared("tutti_comm_split", part, "part");
    tutti_comm& whole = in_use("tutti_comm_split", comm);
    join_or_keep(made, &whole, [&whole, color, key] {
      Communicator split = whole.world.split(color, key);
      return color >= 0 ? make(std::move(split), whole.order, whole.algorithm) : nullptr;
    });
  });
}

tutti_result_t tutti_comm_shrink(tutti_comm_t comm, tutti_comm_t* part) {
  return guarded([&] {
    tutti_comm_t& made = cleared("tutti_comm_shrink", part, "part");
    tutti_comm& whole = in_use("tutti_comm_shrink", comm);
    made = make(whole.world.shrink(), whole.order, whole.algorithm).release();
  });
}

tutti_result_t tutti_comm_create_group(tutti_comm_t comm, const int* ranks, int nranks, const char* name,
                                       tutti_comm_t* part) {
  constexpr char kHere[] = "tutti_comm_create_group";
  return guarded([&] {
    tutti_comm_t& made = cleared(kHere, part, "part");
    tutti_comm& whole = in_use(kHere, comm);
    if (nranks < 0) refuse(ErrorCode::invalid_argument, std::string(kHere) + ": nranks is " + std::to_string(nranks));
    if (ranks == nullptr && nranks > 0) refuse_null(kHere, "ranks");
    const std::span<const int> list(ranks, static_cast<std::size_t>(nranks));
    made = make(whole.world.subgroup(list, name != nullptr ? name : ""), whole.order, whole.algorithm).release();
  });
}
