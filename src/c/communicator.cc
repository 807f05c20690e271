// What a communicator is asked besides its calls.
#include "tutti/communicator.h"

#include <chrono>

#include "c/handles.h"

using namespace tutti;
using namespace tutti::internal::c_api;

// --- a communicator's life ------------------------------------------------------------------------------------------

tutti_result_t tutti_comm_finalize(tutti_comm_t comm) {
  return guarded([&] {
    tutti_comm& whole = in_use("tutti_comm_finalize", comm);
    whole.is_over = true;
    whole.world.finalize();
  });
}

tutti_result_t tutti_comm_destroy(tutti_comm_t comm) {
  return guarded([&] { delete comm; });
}

tutti_result_t tutti_comm_abort(tutti_comm_t comm, const char* reason) {
  return guarded(
      [&] { in_use("tutti_comm_abort", comm).world.abort(reason != nullptr ? reason : "no reason was given"); });
}

tutti_result_t tutti_comm_get_async_error(tutti_comm_t comm, tutti_result_t* failure) {
  constexpr char kHere[] = "tutti_comm_get_async_error";
  return guarded([&] {
    tutti_result_t& to = there(kHere, failure, "failure");
    const auto why = in_use(kHere, comm).world.failure();
    to = why ? result_of(why->code) : TUTTI_SUCCESS;
  });
}

tutti_result_t tutti_comm_set_timeout(tutti_comm_t comm, int64_t timeout_ms) {
  return guarded(
      [&] { in_use("tutti_comm_set_timeout", comm).world.set_timeout(std::chrono::milliseconds(timeout_ms)); });
}

tutti_result_t tutti_comm_count(tutti_comm_t comm, int* count) {
  return guarded([&] {
    int& to = there("tutti_comm_count", count, "count");
    to = in_use("tutti_comm_count", comm).size;
  });
}

tutti_result_t tutti_comm_rank(tutti_comm_t comm, int* rank) {
  return guarded([&] {
    int& to = there("tutti_comm_rank", rank, "rank");
    to = in_use("tutti_comm_rank", comm).rank;
  });
}

// --- memory ---------------------------------------------------------------------------------------------------------

tutti_result_t tutti_comm_register(tutti_comm_t comm, void* data, size_t bytes, tutti_registration_t* registration) {
  return guarded([&] {
    tutti_registration_t& made = cleared("tutti_comm_register", registration, "registration");
    tutti_comm& whole = in_use("tutti_comm_register", comm);
    if (data == nullptr && bytes > 0) refuse_null("tutti_comm_register", "data");
    made = new tutti_registration{whole.world.register_memory(data, bytes)};
  });
}

tutti_result_t tutti_comm_adopt(tutti_comm_t comm, void* data, size_t bytes, tutti_registration_t* registration) {
  return guarded([&] {
    tutti_registration_t& made = cleared("tutti_comm_adopt", registration, "registration");
    tutti_comm& whole = in_use("tutti_comm_adopt", comm);
    if (data == nullptr && bytes > 0) refuse_null("tutti_comm_adopt", "data");
    made = new tutti_registration{whole.world.adopt(data, bytes)};
  });
}

tutti_result_t tutti_comm_deregister(tutti_comm_t, tutti_registration_t registration) {
  return guarded([&] { delete registration; });
}

tutti_result_t tutti_memory_allocate(tutti_comm_t comm, size_t bytes, tutti_memory_t* memory) {
  return guarded([&] {
    tutti_memory_t& made = cleared("tutti_memory_allocate", memory, "memory");
    made = new tutti_memory{in_use("tutti_memory_allocate", comm).world.allocate(bytes)};
  });
}

void* tutti_memory_data(tutti_memory_t memory) { return memory != nullptr ? memory->memory.data() : nullptr; }
size_t tutti_memory_bytes(tutti_memory_t memory) { return memory != nullptr ? memory->memory.bytes() : 0; }

tutti_result_t tutti_memory_free(tutti_memory_t memory) {
  return guarded([&] { delete memory; });
}
