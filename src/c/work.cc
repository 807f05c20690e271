// Started calls: what a program may ask of one.
#include <chrono>

#include "c/handles.h"

using namespace tutti;
using namespace tutti::internal::c_api;

namespace {

// *done: whether the call is over. A call that has failed is over too. One that was asked wrongly, or by a forked
// child, goes on.
template <class Ask>
void ask(int& done, const Ask& is_over) try {
  done = is_over() ? 1 : 0;
} catch (const Error& error) {
  done = error.code == ErrorCode::invalid_argument || error.code == ErrorCode::unsupported ? 0 : 1;
  throw;
}

}  // namespace

tutti_result_t tutti_work_test(tutti_work_t work, int* done) {
  return guarded([&] {
    int& to = there("tutti_work_test", done, "done");
    Work& asked = there("tutti_work_test", work, "work").work;
    ask(to, [&] { return asked.test(); });
  });
}

tutti_result_t tutti_work_wait(tutti_work_t work) {
  return guarded([&] { there("tutti_work_wait", work, "work").work.wait(); });
}

tutti_result_t tutti_work_wait_for(tutti_work_t work, int64_t limit_ms, int* done) {
  constexpr char kHere[] = "tutti_work_wait_for";
  return guarded([&] {
    int& to = there(kHere, done, "done");
    Work& asked = there(kHere, work, "work").work;
    ask(to, [&] { return asked.wait_for(std::chrono::milliseconds(limit_ms)); });
  });
}

tutti_result_t tutti_work_set_timeout(tutti_work_t work, int64_t timeout_ms) {
  return guarded(
      [&] { there("tutti_work_set_timeout", work, "work").work.set_timeout(std::chrono::milliseconds(timeout_ms)); });
}

tutti_result_t tutti_work_on_complete(tutti_work_t work, tutti_complete_function tell, void* user) {
  constexpr char kHere[] = "tutti_work_on_complete";
  return guarded([&] {
    if (tell == nullptr) refuse_null(kHere, "tell");
    there(kHere, work, "work").work.on_complete([tell, user](const std::optional<Error>& error) {
      if (error) {
        tell(user, result_of(error->code), number_of(error->code), error->what());
      } else {
        tell(user, TUTTI_SUCCESS, TUTTI_ERROR_NONE, "");
      }
    });
  });
}

tutti_result_t tutti_work_free(tutti_work_t work) {
  return guarded([&] { delete work; });
}
