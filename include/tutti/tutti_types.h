/// @file
/// The handles and the numbers of tutti/tutti.h, which includes this.
#pragma once

// NOLINTBEGIN(modernize-use-using): C has no `using`

/// @name Handles
/// @{

/// A communicator: an ordered group of ranks that make the same calls in the same order.
typedef struct tutti_comm* tutti_comm_t;
/// A started call.
///
/// **Threads.** One thread at a time uses it; any thread of the process may.
typedef struct tutti_work* tutti_work_t;
/// Memory that every rank of this host maps, so that peers read and write it directly.
///
/// **Threads.** It is made and freed as calls of its communicator are made: by one thread at a time.
typedef struct tutti_memory* tutti_memory_t;
/// Memory of the caller that the RDMA device knows.
///
/// **Threads.** It is made and ended as calls of its communicator are made: by one thread at a time.
typedef struct tutti_registration* tutti_registration_t;
/// @}

/// How a call has ended. The numbers are NCCL's, and there are no others, so a program can map one to the other.
/// tutti_last_error_code() says more.
typedef enum tutti_result {
  TUTTI_SUCCESS = 0,               ///< done, started, or given to the stream
  TUTTI_UNHANDLED_CUDA_ERROR = 1,  ///< not used: what CUDA refuses is a TUTTI_SYSTEM_ERROR
  TUTTI_SYSTEM_ERROR = 2,          ///< TUTTI_ERROR_SYSTEM, or no memory
  TUTTI_INTERNAL_ERROR = 3,        ///< a mistake of the library
  TUTTI_INVALID_ARGUMENT = 4,      ///< TUTTI_ERROR_INVALID_ARGUMENT
  TUTTI_INVALID_USAGE = 5,         ///< TUTTI_ERROR_UNSUPPORTED, TUTTI_ERROR_MISMATCH, TUTTI_ERROR_REFUSED
  TUTTI_REMOTE_ERROR = 6,          ///< another rank: all other codes of tutti_error_code_t
  TUTTI_IN_PROGRESS = 7,           ///< not used: nothing here goes on behind the caller's back without a tutti_work_t
} tutti_result_t;

/// What has gone wrong. docs/guide/errors.md has an example of each.
typedef enum tutti_error_code {
  TUTTI_ERROR_NONE = 0,              ///< nothing
  TUTTI_ERROR_INVALID_ARGUMENT = 1,  ///< the caller's own arguments or settings are wrong
  TUTTI_ERROR_UNSUPPORTED = 2,       ///< well formed, but this build, machine or algorithm cannot do it
  TUTTI_ERROR_MISMATCH = 3,          ///< two ranks made different calls
  TUTTI_ERROR_PEER_LOST = 4,         ///< a peer died, its connection closed, or it was silent for too long
  TUTTI_ERROR_PEER_LEFT = 5,         ///< a peer finished and left while this rank still waits for it
  TUTTI_ERROR_TIMEOUT = 6,           ///< a deadline passed
  TUTTI_ERROR_UNREACHABLE = 7,       ///< joining only: rank 0 could not be reached
  TUTTI_ERROR_REFUSED = 8,           ///< authentication or admission failed
  TUTTI_ERROR_ABORTED = 9,           ///< a rank called tutti_comm_abort(), or exited
  TUTTI_ERROR_SYSTEM = 10,           ///< the operating system, CUDA or an RDMA device refused something
  TUTTI_ERROR_INTERNAL = 11,         ///< a mistake of the library
  TUTTI_ERROR_PARTITIONED = 12,      ///< some ranks cannot be reached, and those that can are no majority
  TUTTI_ERROR_EXPELLED = 13,         ///< the other ranks have given this one up
} tutti_error_code_t;

/// The type of an element. The numbers below 100 are NCCL's; NCCL has none from 100 on.
enum tutti_dtype {
  TUTTI_INT8 = 0,          ///< int8_t
  TUTTI_UINT8 = 1,         ///< uint8_t
  TUTTI_INT32 = 2,         ///< int32_t
  TUTTI_UINT32 = 3,        ///< uint32_t
  TUTTI_INT64 = 4,         ///< int64_t
  TUTTI_UINT64 = 5,        ///< uint64_t
  TUTTI_FLOAT16 = 6,       ///< IEEE 754 binary16; reductions accumulate it in float
  TUTTI_FLOAT32 = 7,       ///< float
  TUTTI_FLOAT64 = 8,       ///< double
  TUTTI_BFLOAT16 = 9,      ///< the upper half of a float; reductions accumulate it in float
  TUTTI_FLOAT8_E4M3 = 10,  ///< tutti::float8_e4m3; reductions accumulate it in float
  TUTTI_FLOAT8_E5M2 = 11,  ///< tutti::float8_e5m2; reductions accumulate it in float
  TUTTI_BOOL = 100,        ///< _Bool: one byte; 0 is false
};
/// One of enum tutti_dtype. A wrong number is refused.
typedef int tutti_dtype_t;

/// How elements are combined. The numbers below 100 are NCCL's; NCCL has no others. tutti::Op in tutti/types.h says
/// what each does with NaN, with overflow, with integers that do not divide, and with TUTTI_BOOL. An operator that the
/// type does not have is refused with TUTTI_INVALID_ARGUMENT: TUTTI_BAND, TUTTI_BOR and TUTTI_BXOR of floating-point
/// types, and TUTTI_AVG of TUTTI_BOOL.
enum tutti_op {
  TUTTI_SUM = 0,     ///< their sum; integers wrap around
  TUTTI_PROD = 1,    ///< their product; integers wrap around
  TUTTI_MAX = 2,     ///< the largest
  TUTTI_MIN = 3,     ///< the smallest
  TUTTI_AVG = 4,     ///< the sum divided by the number of ranks
  TUTTI_BAND = 100,  ///< the bits that all have
  TUTTI_BOR = 101,   ///< the bits that any has
  TUTTI_BXOR = 102,  ///< the bits that an odd number of ranks has
};
/// One of enum tutti_op, or what tutti_op_create_premul_sum() or tutti_op_create_custom() has made. A wrong number is
/// refused.
typedef int tutti_op_t;

/// Where a scalar lies. The numbers are NCCL's.
typedef enum tutti_scalar_residence {
  TUTTI_SCALAR_DEVICE = 0,          ///< not supported
  TUTTI_SCALAR_HOST_IMMEDIATE = 1,  ///< in host memory; it is read at once
} tutti_scalar_residence_t;

// NOLINTEND(modernize-use-using)
