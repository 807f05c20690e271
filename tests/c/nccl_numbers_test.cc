// The numbers of tutti/tutti.h are those of NCCL, where its header is.
#include <gtest/gtest.h>

#include "tutti/tutti.h"
#ifdef TUTTI_TESTS_HAVE_NCCL
#include <nccl.h>
#endif

namespace tutti::internal {
namespace {

TEST(CApi, NumbersAreNcclsOwn) {
#ifdef TUTTI_TESTS_HAVE_NCCL
  EXPECT_EQ(int{TUTTI_SUCCESS}, int{ncclSuccess});
  EXPECT_EQ(int{TUTTI_UNHANDLED_CUDA_ERROR}, int{ncclUnhandledCudaError});
  EXPECT_EQ(int{TUTTI_SYSTEM_ERROR}, int{ncclSystemError});
  EXPECT_EQ(int{TUTTI_INTERNAL_ERROR}, int{ncclInternalError});
  EXPECT_EQ(int{TUTTI_INVALID_ARGUMENT}, int{ncclInvalidArgument});
  EXPECT_EQ(int{TUTTI_INVALID_USAGE}, int{ncclInvalidUsage});
  EXPECT_EQ(int{TUTTI_REMOTE_ERROR}, int{ncclRemoteError});
  EXPECT_EQ(int{TUTTI_IN_PROGRESS}, int{ncclInProgress});
  EXPECT_EQ(int{TUTTI_INT8}, int{ncclInt8});
  EXPECT_EQ(int{TUTTI_UINT8}, int{ncclUint8});
  EXPECT_EQ(int{TUTTI_INT32}, int{ncclInt32});
  EXPECT_EQ(int{TUTTI_UINT32}, int{ncclUint32});
  EXPECT_EQ(int{TUTTI_INT64}, int{ncclInt64});
  EXPECT_EQ(int{TUTTI_UINT64}, int{ncclUint64});
  EXPECT_EQ(int{TUTTI_FLOAT16}, int{ncclFloat16});
  EXPECT_EQ(int{TUTTI_FLOAT32}, int{ncclFloat32});
  EXPECT_EQ(int{TUTTI_FLOAT64}, int{ncclFloat64});
  EXPECT_EQ(int{TUTTI_BFLOAT16}, int{ncclBfloat16});
  EXPECT_EQ(int{TUTTI_FLOAT8_E4M3}, int{ncclFloat8e4m3});
  EXPECT_EQ(int{TUTTI_FLOAT8_E5M2}, int{ncclFloat8e5m2});
  EXPECT_GE(int{TUTTI_BOOL}, int{ncclNumTypes});
  EXPECT_GE(int{TUTTI_BAND}, int{ncclNumOps});
  EXPECT_EQ(int{TUTTI_SUM}, int{ncclSum});
  EXPECT_EQ(int{TUTTI_PROD}, int{ncclProd});
  EXPECT_EQ(int{TUTTI_MAX}, int{ncclMax});
  EXPECT_EQ(int{TUTTI_MIN}, int{ncclMin});
  EXPECT_EQ(int{TUTTI_AVG}, int{ncclAvg});
  EXPECT_EQ(int{TUTTI_SCALAR_DEVICE}, int{ncclScalarDevice});
  EXPECT_EQ(int{TUTTI_SCALAR_HOST_IMMEDIATE}, int{ncclScalarHostImmediate});
  EXPECT_EQ(sizeof(tutti_unique_id), sizeof(ncclUniqueId));
  // libtutti_nccl hands on what NCCL has numbers for without a look: there are no more.
  EXPECT_EQ(int{ncclNumResults}, TUTTI_IN_PROGRESS + 1);
  EXPECT_EQ(int{ncclNumTypes}, TUTTI_FLOAT8_E5M2 + 1);
  EXPECT_EQ(int{ncclNumOps}, TUTTI_AVG + 1);
  EXPECT_EQ(sizeof(ncclRedOp_t), sizeof(tutti_op_t));
#else
  GTEST_SKIP() << "there is no nccl.h of NCCL 2.28 or later";
#endif
}

}  // namespace
}  // namespace tutti::internal
