// libibverbs for a wheel: the functions that tutti calls, found in the system's libibverbs when they are called. A
// system without it has no RDMA device. All of these prepare or wait; what is quick is inline in verbs.h, and needs no
// library.
#include <dlfcn.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <type_traits>

namespace {

void* library() {
  static void* const handle = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
  return handle;
}

// What a function returns that libibverbs, or this version of it, does not have.
template <class Result>
Result nothing() {
  errno = ENOSYS;
  if constexpr (std::is_same_v<Result, const char*>)
    return "unknown";
  else if constexpr (std::is_same_v<Result, int>)
    return ENOSYS;
  else
    return Result();
}

template <class Result, class... Parameters>
Result call(const char* name, Result (*)(Parameters...), std::type_identity_t<Parameters>... arguments) {
  void* const function = library() == nullptr ? nullptr : dlsym(library(), name);
  if (function == nullptr) return nothing<Result>();
  return reinterpret_cast<Result (*)(Parameters...)>(function)(arguments...);
}

}  // namespace

#undef ibv_query_port
#undef ibv_reg_mr

extern "C" {

#define TUTTI_CALL(name, ...) call(#name, &name, __VA_ARGS__)

ibv_device** ibv_get_device_list(int* count) { return TUTTI_CALL(ibv_get_device_list, count); }
void ibv_free_device_list(ibv_device** list) { TUTTI_CALL(ibv_free_device_list, list); }
const char* ibv_get_device_name(ibv_device* device) { return TUTTI_CALL(ibv_get_device_name, device); }
ibv_context* ibv_open_device(ibv_device* device) { return TUTTI_CALL(ibv_open_device, device); }
int ibv_close_device(ibv_context* context) { return TUTTI_CALL(ibv_close_device, context); }

int ibv_query_device(ibv_context* context, ibv_device_attr* attr) {
  return TUTTI_CALL(ibv_query_device, context, attr);
}
int ibv_query_port(ibv_context* context, uint8_t port, _compat_ibv_port_attr* attr) {
  return TUTTI_CALL(ibv_query_port, context, port, attr);
}
int ibv_query_gid(ibv_context* context, uint8_t port, int index, ibv_gid* gid) {
  return TUTTI_CALL(ibv_query_gid, context, port, index, gid);
}
int _ibv_query_gid_ex(ibv_context* context, uint32_t port, uint32_t index, ibv_gid_entry* entry, uint32_t flags,
                      size_t entry_bytes) {
  return TUTTI_CALL(_ibv_query_gid_ex, context, port, index, entry, flags, entry_bytes);
}
const char* ibv_port_state_str(ibv_port_state state) { return TUTTI_CALL(ibv_port_state_str, state); }

int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  return TUTTI_CALL(ibv_get_async_event, context, event);
}
void ibv_ack_async_event(ibv_async_event* event) { TUTTI_CALL(ibv_ack_async_event, event); }
const char* ibv_event_type_str(ibv_event_type type) { return TUTTI_CALL(ibv_event_type_str, type); }

ibv_pd* ibv_alloc_pd(ibv_context* context) { return TUTTI_CALL(ibv_alloc_pd, context); }
int ibv_dealloc_pd(ibv_pd* pd) { return TUTTI_CALL(ibv_dealloc_pd, pd); }
ibv_mr* ibv_reg_mr(ibv_pd* pd, void* data, size_t bytes, int access) {
  return TUTTI_CALL(ibv_reg_mr, pd, data, bytes, access);
}
ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* data, size_t bytes, uint64_t iova, unsigned access) {
  return TUTTI_CALL(ibv_reg_mr_iova2, pd, data, bytes, iova, access);
}
int ibv_dereg_mr(ibv_mr* region) { return TUTTI_CALL(ibv_dereg_mr, region); }

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) { return TUTTI_CALL(ibv_create_comp_channel, context); }
int ibv_destroy_comp_channel(ibv_comp_channel* channel) { return TUTTI_CALL(ibv_destroy_comp_channel, channel); }
ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* of_caller, ibv_comp_channel* channel, int vector) {
  return TUTTI_CALL(ibv_create_cq, context, entries, of_caller, channel, vector);
}
int ibv_destroy_cq(ibv_cq* queue) { return TUTTI_CALL(ibv_destroy_cq, queue); }
int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** queue, void** of_caller) {
  return TUTTI_CALL(ibv_get_cq_event, channel, queue, of_caller);
}
void ibv_ack_cq_events(ibv_cq* queue, unsigned count) { TUTTI_CALL(ibv_ack_cq_events, queue, count); }
const char* ibv_wc_status_str(ibv_wc_status status) { return TUTTI_CALL(ibv_wc_status_str, status); }

ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) { return TUTTI_CALL(ibv_create_qp, pd, attr); }
int ibv_destroy_qp(ibv_qp* pair) { return TUTTI_CALL(ibv_destroy_qp, pair); }
int ibv_modify_qp(ibv_qp* pair, ibv_qp_attr* attr, int mask) { return TUTTI_CALL(ibv_modify_qp, pair, attr, mask); }
}
