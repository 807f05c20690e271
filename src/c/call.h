// A collective as C describes it.
#pragma once

#include <cstddef>
#include <optional>

#include "c/handles.h"
#include "runtime/any_call.h"
#include "tutti/tutti.h"
#include "tutti/types.h"

namespace tutti::internal::c_api {

struct CCall {
  Collective collective;
  const void* sendbuff = nullptr;
  void* recvbuff = nullptr;
  size_t count = 0;
  tutti_dtype_t dtype = TUTTI_UINT8;
  tutti_op_t op = TUTTI_SUM;
  int root = 0;
};

// What a call of the C++ library takes.
struct Described {
  CallSpec spec;
  std::optional<Scalar> scalar;
};

// Throws Error{invalid_argument} for a number of a type or an operator that `comm` has not.
Described describe(const CCall& call, const tutti_comm& comm);

}  // namespace tutti::internal::c_api
