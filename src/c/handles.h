// What the handles of tutti/tutti.h are, and how every function there ends.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tutti/communicator.h"
#include "tutti/tutti.h"

struct tutti_comm {
  tutti::Communicator world;
  tutti::Order order = tutti::Order::canonical;              // of all its calls
  tutti::Algorithm algorithm = tutti::Algorithm::automatic;  // of its collectives
  int rank = 0, size = 1;
  bool is_over = false;                                        // finalized
  std::vector<std::optional<tutti::Operator>> operators = {};  // made for it, by number; nothing: destroyed
};
struct tutti_work {
  tutti::Work work;
};
struct tutti_memory {
  tutti::Memory memory;
};
struct tutti_registration {
  tutti::Registration registration;
};

namespace tutti::internal::c_api {

// Keeps the exception that is being handled as this thread's last error. Throws nothing.
tutti_result_t note_exception() noexcept;

[[noreturn]] void refuse(ErrorCode code, const std::string& message);
[[noreturn]] void refuse_null(const char* function, const char* what);
[[noreturn]] void refuse_comm(const char* function, tutti_comm_t comm);

// Null, or finalized: refused.
inline tutti_comm& in_use(const char* function, tutti_comm_t comm) {
  if (comm == nullptr || comm->is_over) refuse_comm(function, comm);
  return *comm;
}
template <class T>
T& there(const char* function, T* pointer, const char* what) {
  if (pointer == nullptr) refuse_null(function, what);
  return *pointer;
}

// Sets *handle before anything can fail.
template <class Handle>
Handle& cleared(const char* function, Handle* handle, const char* what) {
  Handle& to = there(function, handle, what);
  to = nullptr;
  return to;
}

// No exception crosses into C.
template <class Body>
tutti_result_t guarded(const Body& body) noexcept {
  try {
    body();
    return TUTTI_SUCCESS;
  } catch (...) {
    return note_exception();
  }
}

// The numbers of tutti/tutti.h. Null: it is none. Operators that were made are those of a communicator.
const DType* dtype_of_number(tutti_dtype_t number);
DType known_dtype(const char* function, tutti_dtype_t number);  // or Error{invalid_argument}
std::optional<Operator> operator_of_number(const tutti_comm& comm, tutti_op_t number);

// NCCL's numbers. static_cast<Enum> of a number that is none of them gives no enumerator.
tutti_result_t result_of(ErrorCode code);
tutti_error_code_t number_of(ErrorCode code);

}  // namespace tutti::internal::c_api
