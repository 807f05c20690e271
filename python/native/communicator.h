// A communicator, as Python has it.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "unlocked.h"
#include "work.h"

namespace tutti_python {

using Address = std::uintptr_t;  // of the first byte of a buffer; 0: none
using Counts = std::vector<std::size_t>;

// What Python has set of tutti_config_t. Times are in milliseconds; 0: not set.
struct Config {
  std::optional<std::string> transport, interface_name, verbs_device, table;
  std::int64_t timeout_ms = 0, connect_timeout_ms = 0, heartbeat_timeout_ms = 0, join_timeout_ms = 0, warn_after_ms = 0;
  int port_first = 0, port_last = 0, verbs_gid = -1, order = TUTTI_ORDER_CANONICAL, log_level = -1, progress = -1;

  tutti_config_t for_library() const;  // valid as long as this is
};

// Memory that every rank of this host maps.
class Memory {
 public:
  Memory(tutti_memory_t handle) : handle_(handle) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { tutti_memory_free(handle_); }
  void* data() const { return tutti_memory_data(handle_); }
  std::size_t bytes() const { return tutti_memory_bytes(handle_); }

 private:
  tutti_memory_t handle_;
};

// Memory of a Python object that is shared with the ranks of this host, in place. Keeps the object.
class Adoption {
 public:
  Adoption(tutti_registration_t handle, py::object keep) : handle_(handle), keep_(std::move(keep)) {}
  Adoption(const Adoption&) = delete;
  Adoption& operator=(const Adoption&) = delete;
  ~Adoption() { release(); }
  void release();  // no call may still use the memory; again: does nothing

 private:
  tutti_registration_t handle_;
  py::object keep_;
};

// The functions are called with the interpreter's lock, and give it up while they are in the library.
class Communicator {
 public:
  explicit Communicator(tutti_comm_t handle) : handle_(handle) {}
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  ~Communicator();

  static std::unique_ptr<Communicator> from_environment(const Config& config);
  static std::unique_ptr<Communicator> from_id(const std::string& id, int size, int rank, const Config& config);
  // `store` has set(key, bytes), get(key, seconds) -> bytes, and, if it likes, add(key, number) -> number.
  static std::unique_ptr<Communicator> from_store(const py::object& store, int size, int rank, const Config& config);

  int rank() const;
  int size() const;
  std::unique_ptr<Communicator> split(int color, int key);  // null for a negative color
  std::unique_ptr<Communicator> shrink();
  std::unique_ptr<Communicator> subgroup(const std::vector<int>& ranks, const std::string& name);
  std::unique_ptr<Memory> allocate(std::size_t bytes);
  std::unique_ptr<Adoption> adopt(std::uintptr_t address, std::size_t bytes, py::object keep);
  void abort(const std::string& reason);
  std::optional<Failure> failure() const;
  void set_timeout(std::int64_t milliseconds);
  std::optional<int> probe(double seconds);
  void set_algorithm(const std::optional<std::string>& algorithm);
  void set_order(int order);
  std::string choose(const std::string& collective, std::size_t count, int dtype) const;
  int premul_sum(double scalar, int dtype);
  void destroy_operator(int op);
  void finalize();
  void destroy();
  bool is_destroyed() const { return handle_ == nullptr; }

  // start(comm, &work) starts a call of the library.
  template <class Start>
  tutti_work_t start(Start start) {
    refuse_if_left();
    const Use use(*this);
    free_abandoned();
    tutti_work_t work = nullptr;
    tutti_result_t result = TUTTI_SUCCESS;
    {
      const Unlocked unlocked;
      result = start(handle_, &work);
    }
    check(result);
    return work;
  }

  // Frees the works and the communicators that Python has let go of, and that are over by now.
  static void free_abandoned();

 private:
  // A thread is inside the library with this communicator. Counted with the interpreter's lock.
  class Use {
   public:
    explicit Use(const Communicator& of) : uses_(of.uses_) { ++uses_; }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use() { --uses_; }

   private:
    int& uses_;
  };

  void refuse_if_left() const;  // throws FailureError
  // From now on no thread comes in, but to abort(). Blocks until those inside have come out. False: Python ends, and
  // one never will. Throws what a handler of a signal raises.
  bool keep_others_out();
  template <class Call>
  void call(Call call) const {
    refuse_if_left();
    call_even_if_left(call);
  }
  template <class Call>
  void call_even_if_left(Call call) const {
    if (handle_ == nullptr) refuse_if_left();
    const Use use(*this);
    tutti_result_t result = TUTTI_SUCCESS;
    {
      const Unlocked unlocked;
      result = call(handle_);
    }
    check(result);
  }

  tutti_comm_t handle_;  // null: destroyed
  bool is_left_ = false;
  mutable int uses_ = 0;
};

// The calls of tutti/tutti.h, as methods of `type`: each started, and the one that is made most, blocking.
void bind_calls(py::class_<Communicator>& type);

}  // namespace tutti_python
