// The module tutti._native: tutti/tutti.h for Python. It is for the modules beside it; users import tutti.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <chrono>
#include <thread>

#include "communicator.h"
#include "ending.h"
#include "unlocked.h"
#include "work.h"

namespace tutti_python {
namespace {

// The first byte of a buffer, its bytes, and the type of its elements as the struct module writes it; holds the buffer.
class Buffer {
 public:
  Buffer(const py::object& of, bool writable) {
    if (PyObject_GetBuffer(of.ptr(), &view_, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0)) != 0)
      throw py::error_already_set();
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { PyBuffer_Release(&view_); }
  Address address() const { return reinterpret_cast<Address>(view_.buf); }
  py::ssize_t bytes() const { return view_.len; }
  py::ssize_t item_bytes() const { return view_.itemsize; }
  const char* format() const { return view_.format != nullptr ? view_.format : "B"; }

 private:
  Py_buffer view_;
};

py::bytes unique_id() {
  tutti_unique_id id;
  check(tutti_get_unique_id(&id));
  return {id.bytes, sizeof id.bytes};
}

// No thread of the library is left in Python, or on the way to it, when Python ends. A store's function may take long.
void await_library_threads() {
  constexpr auto kLongest = std::chrono::seconds(3);
  python_ends = true;
  const Unlocked unlocked;
  const auto until = std::chrono::steady_clock::now() + kLongest;
  while (inside_python != 0 && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void bind_work(py::module_& module) {
  py::class_<Work>(module, "Work")
      .def("wait", &Work::wait)
      .def("is_over", &Work::is_over)
      .def("wait_shortly", &Work::wait_shortly)
      .def("failure",
           [](const Work& work) -> py::object { return work.failure() ? to_exception(*work.failure()) : py::none(); })
      .def("set_timeout", &Work::set_timeout)
      .def("advance_by_itself", &Work::advance_by_itself)
      .def("on_complete", &Work::on_complete);
}

void bind_config(py::module_& module) {
  py::class_<Config>(module, "Config")
      .def(py::init<>())
      .def_readwrite("transport", &Config::transport)
      .def_readwrite("interface_name", &Config::interface_name)
      .def_readwrite("verbs_device", &Config::verbs_device)
      .def_readwrite("verbs_gid", &Config::verbs_gid)
      .def_readwrite("table", &Config::table)
      .def_readwrite("timeout_ms", &Config::timeout_ms)
      .def_readwrite("connect_timeout_ms", &Config::connect_timeout_ms)
      .def_readwrite("heartbeat_timeout_ms", &Config::heartbeat_timeout_ms)
      .def_readwrite("join_timeout_ms", &Config::join_timeout_ms)
      .def_readwrite("warn_after_ms", &Config::warn_after_ms)
      .def_readwrite("port_first", &Config::port_first)
      .def_readwrite("port_last", &Config::port_last)
      .def_readwrite("order", &Config::order)
      .def_readwrite("log_level", &Config::log_level)
      .def_readwrite("progress", &Config::progress);
}

void bind_communicator(py::module_& module) {
  py::class_<Communicator> type(module, "Communicator");
  type.def_static("from_environment", &Communicator::from_environment)
      .def_static("from_id", &Communicator::from_id)
      .def_static("from_store", &Communicator::from_store)
      .def_property_readonly("rank", &Communicator::rank)
      .def_property_readonly("size", &Communicator::size)
      .def("split", &Communicator::split)
      .def("shrink", &Communicator::shrink)
      .def("subgroup", &Communicator::subgroup)
      .def("allocate", &Communicator::allocate)
      .def("adopt", &Communicator::adopt)
      .def("abort", &Communicator::abort)
      .def("failure",
           [](const Communicator& comm) -> py::object {
             const std::optional<Failure> failure = comm.failure();
             return failure ? to_exception(*failure) : py::none();
           })
      .def("set_timeout", &Communicator::set_timeout)
      .def("probe", &Communicator::probe)
      .def("set_algorithm", &Communicator::set_algorithm)
      .def("set_order", &Communicator::set_order)
      .def("choose", &Communicator::choose)
      .def("premul_sum", &Communicator::premul_sum)
      .def("destroy_operator", &Communicator::destroy_operator)
      .def("finalize", &Communicator::finalize)
      .def("destroy", &Communicator::destroy)
      .def_property_readonly("is_destroyed", &Communicator::is_destroyed);
  bind_calls(type);
}

void bind_memory(py::module_& module) {
  py::class_<Buffer>(module, "Buffer")
      .def(py::init<const py::object&, bool>())
      .def_property_readonly("address", &Buffer::address)
      .def_property_readonly("bytes", &Buffer::bytes)
      .def_property_readonly("item_bytes", &Buffer::item_bytes)
      .def_property_readonly("format", &Buffer::format);
  py::class_<Adoption>(module, "Adoption")
      .def("release", &Adoption::release,
           "Makes the memory private again, with the contents that it has now. No call may still use it.")
      .def("__enter__", [](py::object self) { return self; })
      .def("__exit__", [](Adoption& adoption, const py::args&) { adoption.release(); });
  py::class_<Memory>(module, "Memory", py::buffer_protocol())
      .def_property_readonly("address", [](const Memory& memory) { return reinterpret_cast<Address>(memory.data()); })
      .def("__len__", &Memory::bytes)
      .def_buffer([](const Memory& memory) {
        const auto bytes = static_cast<py::ssize_t>(memory.bytes());
        return py::buffer_info(memory.data(), 1, py::format_descriptor<unsigned char>::format(), 1, {bytes}, {1});
      });
}

}  // namespace
}  // namespace tutti_python

PYBIND11_MODULE(_native, module) {
  using namespace tutti_python;
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const FailureError& error) {
      const py::object exception = to_exception(error.failure());
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
    }
  });
  bind_work(module);
  bind_config(module);
  bind_memory(module);
  bind_communicator(module);
  py::module_::import("atexit").attr("register")(py::cpp_function(&await_library_threads));
  module.def("unique_id", &unique_id);
  module.def("python_ends", [] { return python_ends.load(); });
  module.def("group_start", &Work::start_group);
  module.def("group_end", &Work::end_group);
  module.def("version", [] {
    int number = 0;
    check(tutti_get_version(&number));
    return number;
  });
}
