// Memory, and memory that the library is told of.
#include "nccl/communicator.h"
#include "nccl/device.h"

using namespace tutti::nccl;

ncclResult_t ncclMemAlloc(void** ptr, size_t size) {
  if (ptr == nullptr) return refuse(ncclInvalidArgument, __func__, "the pointer to the memory is null");
  *ptr = allocate(size);
  return *ptr != nullptr ? ncclSuccess : refuse(ncclSystemError, __func__, "there is no memory left");
}

ncclResult_t ncclMemFree(void* ptr) {
  return release(ptr) ? ncclSuccess : refuse(ncclUnhandledCudaError, __func__, "CUDA does not free the memory");
}

ncclResult_t ncclCommRegister(const ncclComm_t comm, void* buff, size_t size, void** handle) {
  tutti_registration_t made = nullptr;
  const ncclResult_t result = told(tutti_comm_register(Inside(comm), buff, size, handle != nullptr ? &made : nullptr));
  if (handle != nullptr) *handle = made;
  return result;
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void* handle) {
  return told(tutti_comm_deregister(Inside(comm), static_cast<tutti_registration_t>(handle)));
}

// What a window is for on the host: the library then knows the memory.
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* buff, size_t size, ncclWindow_t* win, int) {
  return ncclCommRegister(comm, buff, size, reinterpret_cast<void**>(win));
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win) { return ncclCommDeregister(comm, win); }

TUTTI_NCCL_ALSO_AS_P(ncclMemAlloc);
TUTTI_NCCL_ALSO_AS_P(ncclMemFree);
TUTTI_NCCL_ALSO_AS_P(ncclCommRegister);
TUTTI_NCCL_ALSO_AS_P(ncclCommDeregister);
TUTTI_NCCL_ALSO_AS_P(ncclCommWindowRegister);
TUTTI_NCCL_ALSO_AS_P(ncclCommWindowDeregister);
