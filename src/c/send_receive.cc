// Send and receive, and groups of calls.
#include <chrono>
#include <memory>

#include "c/call.h"
#include "c/handles.h"

namespace {

using namespace tutti;
using namespace tutti::internal::c_api;

template <class Start>
tutti_result_t start(const char* function, tutti_comm_t comm, tutti_work_t* work, const Start& body) {
  return guarded([&] {
    tutti_work_t& made = there(function, work, "work");
    made = nullptr;
    tutti_comm& on = in_use(function, comm);
    auto started = std::make_unique<tutti_work>();  // first: a call that was made must have an owner
    started->work = body(on);
    made = started.release();
  });
}

}  // namespace

tutti_result_t tutti_send(const void* sendbuff, size_t count, tutti_dtype_t dtype, int peer, tutti_comm_t comm,
                          void* stream) {
  return guarded([&] {
    tutti_comm& on = in_use("tutti_send", comm);
    on.world.send(sendbuff, count, known_dtype("tutti_send", dtype), peer, {.order = on.order, .stream = stream});
  });
}

tutti_result_t tutti_recv(void* recvbuff, size_t count, tutti_dtype_t dtype, int peer, tutti_comm_t comm,
                          void* stream) {
  return guarded([&] {
    tutti_comm& on = in_use("tutti_recv", comm);
    on.world.receive(recvbuff, count, known_dtype("tutti_recv", dtype), peer, {.order = on.order, .stream = stream});
  });
}

tutti_result_t tutti_start_send(const void* sendbuff, size_t count, tutti_dtype_t dtype, int peer, int tag,
                                tutti_comm_t comm, void* stream, tutti_work_t* work) {
  constexpr char kHere[] = "tutti_start_send";
  return start(kHere, comm, work, [&](tutti_comm& on) {
    return on.world.start_send(sendbuff, count, known_dtype(kHere, dtype), peer,
                               {.order = on.order, .stream = stream, .tag = tag});
  });
}

tutti_result_t tutti_start_recv(void* recvbuff, size_t count, tutti_dtype_t dtype, int peer, int tag, tutti_comm_t comm,
                                void* stream, tutti_work_t* work) {
  constexpr char kHere[] = "tutti_start_recv";
  return start(kHere, comm, work, [&](tutti_comm& on) {
    return on.world.start_receive(recvbuff, count, known_dtype(kHere, dtype), peer,
                                  {.order = on.order, .stream = stream, .tag = tag});
  });
}

tutti_result_t tutti_probe(int64_t limit_ms, tutti_comm_t comm, int* peer) {
  return guarded([&] {
    int& found = there("tutti_probe", peer, "peer");
    found = in_use("tutti_probe", comm).world.probe(std::chrono::milliseconds(limit_ms)).value_or(-1);
  });
}

tutti_result_t tutti_group_start(void) {
  return guarded([] { group_start(); });
}

tutti_result_t tutti_group_end(void) {
  return guarded([] { group_end(); });
}
