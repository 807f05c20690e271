// The calls of tutti/tutti.h. Buffers are addresses: the Python above knows where they are.
#include <pybind11/stl.h>

#include "communicator.h"

namespace tutti_python {
namespace {

// How a call is made; `keep` is what must live as long as the call. Started: it gives a Work. Blocking: it is over when
// the function returns, or it is interrupted, and goes on. A peer that does not come is waited for `timeout_ms`, if
// that is not 0, else as the communicator says.
struct Started {
  py::object keep;
  template <class Start>
  std::unique_ptr<Work> make(Communicator& to, Start start) {
    return std::make_unique<Work>(to.start(start), std::move(keep));
  }
};
struct Blocking {
  std::int64_t timeout_ms;
  py::object keep;
  template <class Start>
  void make(Communicator& to, Start start) {
    Work work(to.start(start), std::move(keep));
    if (timeout_ms > 0) work.set_timeout(timeout_ms);
    work.wait(-1);
  }
};

const void* in(Address address) { return reinterpret_cast<const void*>(address); }
void* out(Address address) { return reinterpret_cast<void*>(address); }

// Displacements may be None: each row begins where the one before it ends.
const std::size_t* data(const std::optional<Counts>& counts) { return counts ? counts->data() : nullptr; }

template <class How>
auto all_reduce(How how, Communicator& to, Address send, Address recv, std::size_t count, int dtype, int op,
                Address stream) {
  return how.make(to, [&](tutti_comm_t comm, tutti_work_t* work) {
    return tutti_start_all_reduce(in(send), out(recv), count, dtype, op, comm, out(stream), work);
  });
}

std::unique_ptr<Work> reduce(Communicator& to, Address send, Address recv, std::size_t count, int dtype, int op,
                             int root, Address stream, py::object keep) {
  return Started{std::move(keep)}.make(to, [&](tutti_comm_t comm, tutti_work_t* work) {
    return tutti_start_reduce(in(send), out(recv), count, dtype, op, root, comm, out(stream), work);
  });
}

std::unique_ptr<Work> broadcast(Communicator& to, Address send, Address recv, std::size_t count, int dtype, int root,
                                Address stream, py::object keep) {
  return Started{std::move(keep)}.make(to, [&](tutti_comm_t comm, tutti_work_t* work) {
    return tutti_start_broadcast(in(send), out(recv), count, dtype, root, comm, out(stream), work);
  });
}

std::unique_ptr<Work> reduce_scatter(Communicator& to, Address send, Address recv, std::size_t count, int dtype, int op,
                                     Address stream, py::object keep) {
  return Started{std::move(keep)}.make(to, [&](tutti_comm_t comm, tutti_work_t* work) {
    return tutti_start_reduce_scatter(in(send), out(recv), count, dtype, op, comm, out(stream), work);
  });
}

std::unique_ptr<Work> reduce_scatter_v(Communicator& to, Address send, const Counts& counts,
                                       const std::optional<Counts>& displacements, Address recv, int dtype, int op,
                                       Address stream, py::object keep) {
  return Started{std::move(keep)}.make(to, [&](tutti_comm_t comm, tutti_work_t* work) {
    return tutti_start_reduce_scatter_v(in(send), counts.data(), data(displacements), out(recv), dtype, op, comm,
                                        out(stream), work);
  });
}

std::unique_ptr<Work> all_gather(Communicator& to, Address send, Address recv, std::size_t count, int dtype,
                                 Address stream, py::object keep) {
  return Started{std::move(keep)}.make(to, [&](tutti_comm_t comm, tutti_work_t* work) {
    return tutti_start_all_gather(in(send), out(recv), count, dtype, comm, out(stream), work);
  });
}

std::unique_ptr<Work> all_gather_v(Communicator& to, Address send, Address recv, const Counts& counts,
                                   const std::optional<Counts>& displacements, int dtype, Address stream,
                                   py::object keep) {
  return Started{std::move(keep)}.make(to, [&](tutti_comm_t comm, tutti_work_t* work) {
    return tutti_start_all_gather_v(in(send), out(recv), counts.data(), data(displacements), dtype, comm, out(stream),
                                    work);
  });
}

std::unique_ptr<Work> gather(Communicator& to, Address send, Address recv, std::size_t count, int dtype, int root,
                             Address stream, py::object keep) {
  return Started{std::move(keep)}.make(to, [&](tutti_comm_t comm, tutti_work_t* work) {
    return tutti_start_gather(in(send), out(recv), count, dtype, root, comm, out(stream), work);
  });
}

std::unique_ptr<Work> gather_v(Communicator& to, Address send, std::size_t count, Address recv,
                               const std::optional<Counts>& counts, const std::optional<Counts>& displacements,
                               int dtype, int root, Address stream, py::object keep) {
  return Started{std::move(keep)}.make(to, [&](tutti_comm_t comm, tutti_work_t* work) {
    return tutti_start_gather_v(in(send), count, out(recv), data(counts), data(displacements), dtype, root, comm,
                                out(stream), work);
  });
}

std::unique_ptr<Work> scatter(Communicator& to, Address send, Address recv, std::size_t count, int dtype, int root,
                              Address stream, py::object keep) {
  return Started{std::move(keep)}.make(to, [&](tutti_comm_t comm, tutti_work_t* work) {
    return tutti_start_scatter(in(send), out(recv), count, dtype, root, comm, out(stream), work);
  });
}

std::unique_ptr<Work> scatter_v(Communicator& to, Address send, const std::optional<Counts>& counts,
                                const std::optional<Counts>& displacements, Address recv, std::size_t count, int dtype,
                                int root, Address stream, py::object keep) {
  return Started{std::move(keep)}.make(to, [&](tutti_comm_t comm, tutti_work_t* work) {
    return tutti_start_scatter_v(in(send), data(counts), data(displacements), out(recv), count, dtype, root, comm,
                                 out(stream), work);
  });
}

std::unique_ptr<Work> scan(Communicator& to, Address send, Address recv, std::size_t count, int dtype, int op,
                           Address stream, py::object keep) {
  return Started{std::move(keep)}.make(to, [&](tutti_comm_t comm, tutti_work_t* work) {
    return tutti_start_scan(in(send), out(recv), count, dtype, op, comm, out(stream), work);
  });
}

std::unique_ptr<Work> exclusive_scan(Communicator& to, Address send, Address recv, std::size_t count, int dtype, int op,
                                     Address stream, py::object keep) {
  return Started{std::move(keep)}.make(to, [&](tutti_comm_t comm, tutti_work_t* work) {
    return tutti_start_exclusive_scan(in(send), out(recv), count, dtype, op, comm, out(stream), work);
  });
}

std::unique_ptr<Work> all_to_all(Communicator& to, Address send, Address recv, std::size_t count, int dtype,
                                 Address stream, py::object keep) {
  return Started{std::move(keep)}.make(to, [&](tutti_comm_t comm, tutti_work_t* work) {
    return tutti_start_all_to_all(in(send), out(recv), count, dtype, comm, out(stream), work);
  });
}

std::unique_ptr<Work> all_to_all_v(Communicator& to, Address send, const Counts& send_counts,
                                   const std::optional<Counts>& send_displacements, Address recv,
                                   const Counts& recv_counts, const std::optional<Counts>& recv_displacements,
                                   int dtype, Address stream, py::object keep) {
  return Started{std::move(keep)}.make(to, [&](tutti_comm_t comm, tutti_work_t* work) {
    return tutti_start_all_to_all_v(in(send), send_counts.data(), data(send_displacements), out(recv),
                                    recv_counts.data(), data(recv_displacements), dtype, comm, out(stream), work);
  });
}

std::unique_ptr<Work> barrier(Communicator& to, Address stream, py::object keep) {
  return Started{std::move(keep)}.make(
      to, [&](tutti_comm_t comm, tutti_work_t* work) { return tutti_start_barrier(comm, out(stream), work); });
}

std::unique_ptr<Work> send(Communicator& to, Address data, std::size_t count, int dtype, int peer, int tag,
                           Address stream, py::object keep) {
  return Started{std::move(keep)}.make(to, [&](tutti_comm_t comm, tutti_work_t* work) {
    return tutti_start_send(in(data), count, dtype, peer, tag, comm, out(stream), work);
  });
}

std::unique_ptr<Work> receive(Communicator& to, Address data, std::size_t count, int dtype, int peer, int tag,
                              Address stream, py::object keep) {
  return Started{std::move(keep)}.make(to, [&](tutti_comm_t comm, tutti_work_t* work) {
    return tutti_start_recv(out(data), count, dtype, peer, tag, comm, out(stream), work);
  });
}

}  // namespace

void bind_calls(py::class_<Communicator>& type) {
  type.def("all_reduce", [](Communicator& to, Address send, Address recv, std::size_t count, int dtype, int op,
                            Address stream, std::int64_t timeout_ms, py::object keep) {
    all_reduce(Blocking{timeout_ms, std::move(keep)}, to, send, recv, count, dtype, op, stream);
  });
  type.def("start_all_reduce", [](Communicator& to, Address send, Address recv, std::size_t count, int dtype, int op,
                                  Address stream, py::object keep) {
    return all_reduce(Started{std::move(keep)}, to, send, recv, count, dtype, op, stream);
  });
  type.def("start_reduce", &reduce);
  type.def("start_broadcast", &broadcast);
  type.def("start_reduce_scatter", &reduce_scatter);
  type.def("start_reduce_scatter_v", &reduce_scatter_v);
  type.def("start_all_gather", &all_gather);
  type.def("start_all_gather_v", &all_gather_v);
  type.def("start_gather", &gather);
  type.def("start_gather_v", &gather_v);
  type.def("start_scatter", &scatter);
  type.def("start_scatter_v", &scatter_v);
  type.def("start_scan", &scan);
  type.def("start_exclusive_scan", &exclusive_scan);
  type.def("start_all_to_all", &all_to_all);
  type.def("start_all_to_all_v", &all_to_all_v);
  type.def("start_barrier", &barrier);
  type.def("start_send", &send);
  type.def("start_receive", &receive);
}

}  // namespace tutti_python
