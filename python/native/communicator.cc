#include "communicator.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>

#include "ending.h"

namespace tutti_python {
namespace {

// What a thread of the library has let go of. With the interpreter's lock. It lives for ever.
std::vector<tutti_comm_t>& abandoned_communicators() {
  static auto* const all = new std::vector<tutti_comm_t>;
  return *all;
}

// Calls of the library that make a communicator.
template <class Make>
std::unique_ptr<Communicator> made(Make make) {
  tutti_comm_t handle = nullptr;
  tutti_result_t result = TUTTI_SUCCESS;
  {
    const Unlocked unlocked;
    result = make(&handle);
  }
  check(result);
  return handle != nullptr ? std::make_unique<Communicator>(handle) : nullptr;
}

// A join runs on a thread of its own, so that a signal, as of Ctrl-C, ends the wait for it. The join then goes on until
// its timeout, and what it makes is let go of.
struct Join {
  std::mutex mutex;
  std::condition_variable changed;
  bool over = false, is_wanted = true;
  tutti_comm_t handle = nullptr;
  tutti_result_t result = TUTTI_SUCCESS;
  Failure failure;
};

// join(&comm) joins. It must own what it needs.
template <class Function>
std::unique_ptr<Communicator> joined(Function join) {
  const auto state = std::make_shared<Join>();
  std::thread([state, owned = std::optional<Function>(std::move(join))]() mutable {
    tutti_comm_t handle = nullptr;
    const tutti_result_t result = (*owned)(&handle);
    Failure failure;
    if (result != TUTTI_SUCCESS) failure = last_failure();
    owned.reset();  // before Python may end
    const std::lock_guard lock(state->mutex);
    if (!state->is_wanted) {
      tutti_comm_destroy(handle);
      return;
    }
    state->handle = handle;
    state->result = result;
    state->failure = std::move(failure);
    state->over = true;
    state->changed.notify_all();
  }).detach();
  while (true) {
    {
      const Unlocked unlocked;
      std::unique_lock lock(state->mutex);
      if (state->changed.wait_for(lock, std::chrono::milliseconds(50), [&] { return state->over; })) break;
    }
    if (PyErr_CheckSignals() == 0) continue;
    py::error_already_set raised;
    {
      const Unlocked unlocked;
      const std::lock_guard lock(state->mutex);
      state->is_wanted = false;
      if (state->over) tutti_comm_destroy(state->handle);
    }
    throw raised;
  }
  if (state->result != TUTTI_SUCCESS) throw FailureError(state->failure);
  return std::make_unique<Communicator>(state->handle);
}

// A store of Python, for the time of a join. What Python raises is kept, to be raised where the join ends.
struct PythonStore {
  py::object store;
  std::optional<py::error_already_set> raised;

  // With or without the interpreter's lock.
  static void free(PythonStore* store) {
    const MayCallPython may;
    if (!may) return;
    const py::gil_scoped_acquire lock;
    delete store;
  }

  template <class Body>
  int guarded(Body body) {
    const MayCallPython may;
    if (!may) return 1;
    const py::gil_scoped_acquire lock;
    try {
      body();
      return 0;
    } catch (py::error_already_set& error) {
      raised.emplace(error);
    } catch (const std::exception& error) {  // of a value that is not of the type it should be
      PyErr_SetString(PyExc_TypeError, error.what());
      raised.emplace();
    }
    return 1;
  }
};

int set_in_store(void* user, const char* key, const void* value, size_t bytes) {
  auto& store = *static_cast<PythonStore*>(user);
  return store.guarded(
      [&] { store.store.attr("set")(py::str(key), py::bytes(static_cast<const char*>(value), bytes)); });
}

int get_from_store(void* user, const char* key, void* value, size_t capacity, size_t* bytes, int64_t timeout_ms) {
  auto& store = *static_cast<PythonStore*>(user);
  return store.guarded([&] {
    const std::string got = py::bytes(store.store.attr("get")(py::str(key), static_cast<double>(timeout_ms) / 1000));
    if (got.size() > capacity) throw std::length_error("a value of the store is too long");
    std::memcpy(value, got.data(), got.size());
    *bytes = got.size();
  });
}

int add_in_store(void* user, const char* key, int64_t delta, int64_t* sum) {
  auto& store = *static_cast<PythonStore*>(user);
  return store.guarded([&] { *sum = store.store.attr("add")(py::str(key), delta).cast<int64_t>(); });
}

// What tutti_op_create_premul_sum() reads.
struct Scalar {
  int dtype;
  alignas(8) unsigned char bytes[8] = {};
};

template <class T>
Scalar scalar_of(int dtype, double value) {
  if constexpr (std::is_integral_v<T>) {
    constexpr double kEnd = 2.0 * (1ull << (std::numeric_limits<T>::digits - 1));  // one above the largest
    if (!(value >= static_cast<double>(std::numeric_limits<T>::min()) && value < kEnd) || value != std::trunc(value))
      throw py::value_error("the factor of a premul_sum must be of the elements' type, and " +
                            std::string(py::str(py::float_(value))) + " is no integer that fits it");
  }
  const T typed = static_cast<T>(value);
  Scalar scalar{dtype};
  std::memcpy(scalar.bytes, &typed, sizeof typed);
  return scalar;
}

// The factor of elements of type `dtype`.
Scalar scalar_for(int dtype, double value) {
  switch (dtype) {
    case TUTTI_INT8: return scalar_of<std::int8_t>(dtype, value);
    case TUTTI_UINT8: return scalar_of<std::uint8_t>(dtype, value);
    case TUTTI_INT32: return scalar_of<std::int32_t>(dtype, value);
    case TUTTI_UINT32: return scalar_of<std::uint32_t>(dtype, value);
    case TUTTI_INT64: return scalar_of<std::int64_t>(dtype, value);
    case TUTTI_UINT64: return scalar_of<std::uint64_t>(dtype, value);
    case TUTTI_FLOAT64: return scalar_of<double>(dtype, value);
    case TUTTI_BOOL: throw py::value_error("premul_sum is not defined for booleans");
    default: return scalar_of<float>(TUTTI_FLOAT32, value);  // of the shorter floats too
  }
}

}  // namespace

tutti_config_t Config::for_library() const {
  const auto text = [](const std::optional<std::string>& value) { return value ? value->c_str() : nullptr; };
  tutti_config_t config = TUTTI_CONFIG_INITIALIZER;
  config.transport = text(transport);
  config.timeout_ms = timeout_ms;
  config.connect_timeout_ms = connect_timeout_ms;
  config.heartbeat_timeout_ms = heartbeat_timeout_ms;
  config.join_timeout_ms = join_timeout_ms;
  config.warn_after_ms = warn_after_ms;
  config.interface_name = text(interface_name);
  config.port_first = port_first;
  config.port_last = port_last;
  config.verbs_device = text(verbs_device);
  config.verbs_gid = verbs_gid;
  config.table = text(table);
  config.order = order;
  config.log_level = log_level;
  config.progress = progress;
  return config;
}

std::unique_ptr<Communicator> Communicator::from_environment(const Config& config) {
  return joined([config](tutti_comm_t* comm) {
    const tutti_config_t given = config.for_library();
    return tutti_comm_init_env_config(comm, &given);
  });
}

std::unique_ptr<Communicator> Communicator::from_id(const std::string& id, int size, int rank, const Config& config) {
  tutti_unique_id place;
  if (id.size() != sizeof place.bytes)
    throw py::value_error("a unique id has " + std::to_string(sizeof place.bytes) + " bytes, not " +
                          std::to_string(id.size()));
  std::memcpy(place.bytes, id.data(), id.size());
  return joined([=](tutti_comm_t* comm) {
    const tutti_config_t given = config.for_library();
    return tutti_comm_init_rank_config(comm, size, place, rank, &given);
  });
}

std::unique_ptr<Communicator> Communicator::from_store(const py::object& store, int size, int rank,
                                                       const Config& config) {
  const bool adds = py::hasattr(store, "add");
  const std::shared_ptr<PythonStore> python(new PythonStore{store, {}}, PythonStore::free);
  try {
    return joined([=](tutti_comm_t* comm) {
      const tutti_store_t callbacks{python.get(), set_in_store, get_from_store, adds ? add_in_store : nullptr};
      const tutti_config_t given = config.for_library();
      return tutti_comm_init_store(comm, size, rank, callbacks, &given);
    });
  } catch (const FailureError& error) {
    if (!python->raised) throw;
    const std::string text = error.failure().text + " (the store raised " + python->raised->what() + ")";
    py::raise_from(*python->raised, PyExc_RuntimeError, text.c_str());
    throw py::error_already_set();
  }
}

int Communicator::rank() const {
  int rank = 0;
  check(tutti_comm_rank(handle_, &rank));
  return rank;
}

int Communicator::size() const {
  int size = 0;
  check(tutti_comm_count(handle_, &size));
  return size;
}

std::unique_ptr<Communicator> Communicator::split(int color, int key) {
  refuse_if_left();
  const Use use(*this);
  return made([&](tutti_comm_t* part) { return tutti_comm_split(handle_, color, key, part); });
}

std::unique_ptr<Communicator> Communicator::shrink() {
  refuse_if_left();
  const Use use(*this);
  return made([&](tutti_comm_t* part) { return tutti_comm_shrink(handle_, part); });
}

std::unique_ptr<Communicator> Communicator::subgroup(const std::vector<int>& ranks, const std::string& name) {
  refuse_if_left();
  const Use use(*this);
  return made([&](tutti_comm_t* part) {
    return tutti_comm_create_group(handle_, ranks.data(), static_cast<int>(ranks.size()), name.c_str(), part);
  });
}

std::unique_ptr<Memory> Communicator::allocate(std::size_t bytes) {
  tutti_memory_t memory = nullptr;
  call([&](tutti_comm_t comm) { return tutti_memory_allocate(comm, bytes, &memory); });
  return std::make_unique<Memory>(memory);
}

std::unique_ptr<Adoption> Communicator::adopt(std::uintptr_t address, std::size_t bytes, py::object keep) {
  tutti_registration_t adopted = nullptr;
  call([&](tutti_comm_t comm) { return tutti_comm_adopt(comm, reinterpret_cast<void*>(address), bytes, &adopted); });
  return std::make_unique<Adoption>(adopted, std::move(keep));
}

void Adoption::release() {
  const tutti_registration_t mine = std::exchange(handle_, nullptr);  // with the lock: of several threads, one ends it
  if (mine == nullptr) return;
  {
    const Unlocked unlocked;
    tutti_comm_deregister(nullptr, mine);
  }
  keep_ = py::none();
}

void Communicator::abort(const std::string& reason) {
  call_even_if_left([&](tutti_comm_t comm) { return tutti_comm_abort(comm, reason.c_str()); });
}

std::optional<Failure> Communicator::failure() const {
  if (handle_ == nullptr) refuse_if_left();
  const Use use(*this);
  tutti_result_t failure = TUTTI_SUCCESS;
  check(tutti_comm_get_async_error(handle_, &failure));
  if (failure == TUTTI_SUCCESS) return {};
  return Failure{static_cast<int>(tutti_last_error_code(handle_)), tutti_last_error_peer(handle_),
                 tutti_last_error(handle_)};
}

void Communicator::set_timeout(std::int64_t milliseconds) {
  call([&](tutti_comm_t comm) { return tutti_comm_set_timeout(comm, milliseconds); });
}

std::optional<int> Communicator::probe(double seconds) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kSlice{200};  // before it looks for signals, as of Ctrl-C; long enough to sleep
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(std::clamp(seconds, 0.0, 1e9)));
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    int peer = -1;
    call([&](tutti_comm_t comm) {
      return tutti_probe(std::clamp(left, std::chrono::milliseconds(0), kSlice).count(), comm, &peer);
    });
    if (peer >= 0) return peer;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    if (Clock::now() >= until) return std::nullopt;
  }
}

void Communicator::set_algorithm(const std::optional<std::string>& algorithm) {
  call([&](tutti_comm_t comm) { return tutti_comm_set_algorithm(comm, algorithm ? algorithm->c_str() : nullptr); });
}

void Communicator::set_order(int order) {
  call([&](tutti_comm_t comm) { return tutti_comm_set_order(comm, order); });
}

std::string Communicator::choose(const std::string& collective, std::size_t count, int dtype) const {
  const char* algorithm = nullptr;
  call([&](tutti_comm_t comm) { return tutti_comm_choose(comm, collective.c_str(), count, dtype, &algorithm); });
  return algorithm;
}

int Communicator::premul_sum(double scalar, int dtype) {
  const Scalar typed = scalar_for(dtype, scalar);
  tutti_op_t op = 0;
  call([&](tutti_comm_t comm) {
    return tutti_op_create_premul_sum(&op, typed.bytes, typed.dtype, TUTTI_SCALAR_HOST_IMMEDIATE, comm);
  });
  return op;
}

void Communicator::destroy_operator(int op) {
  call([&](tutti_comm_t comm) { return tutti_op_destroy(op, comm); });
}

void Communicator::finalize() {
  refuse_if_left();
  if (!keep_others_out()) return;
  const Use use(*this);
  tutti_result_t result = TUTTI_SUCCESS;
  {
    const Unlocked unlocked;
    result = tutti_comm_finalize(handle_);
  }
  check(result);
}

Communicator::~Communicator() {
  if (is_library_thread && handle_ != nullptr)
    abandoned_communicators().push_back(handle_);
  else
    destroy();
}

void Communicator::free_abandoned() {
  Work::free_abandoned();
  if (abandoned_communicators().empty() || is_library_thread) return;
  const std::vector<tutti_comm_t> these = std::exchange(abandoned_communicators(), {});
  const Unlocked unlocked;
  for (tutti_comm_t handle : these) tutti_comm_destroy(handle);
}

void Communicator::refuse_if_left() const {
  if (is_left_)
    throw FailureError({TUTTI_ERROR_INVALID_ARGUMENT, -1,
                        "the communicator was left: finalize(), destroy() or destroy_process_group() was called"});
}

bool Communicator::keep_others_out() {
  is_left_ = true;
  while (uses_ > 0) {
    if (python_ends) return false;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    const Unlocked unlocked;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

void Communicator::destroy() {
  if (!keep_others_out() || handle_ == nullptr) return;
  const tutti_comm_t handle = std::exchange(handle_, nullptr);
  const Unlocked unlocked;
  tutti_comm_destroy(handle);
}

}  // namespace tutti_python
