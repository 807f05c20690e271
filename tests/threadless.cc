#include "threadless.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>

#include <atomic>
#include <new>

namespace {

using Count = std::atomic<int>;

// In memory that forked processes share. What starts a thread before main() may be the first to ask for it; else
// kListens is, before any process forks.
Count& started() {
  static Count& count =
      *new (::mmap(nullptr, sizeof(Count), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Count(0);
  return count;
}

class ExpectsNoThread : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo&) override { tutti::internal::expect_no_thread_started(); }
};

const bool kListens = [] {
  started();
  testing::UnitTest::GetInstance()->listeners().Append(new ExpectsNoThread);
  return true;
}();

}  // namespace

// The program's own function comes before the C library's, also for std::thread, which is in a library.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*),
                              void* argument) noexcept {
  static const auto create = reinterpret_cast<decltype(&pthread_create)>(::dlsym(RTLD_NEXT, "pthread_create"));
  ++started();
  return create(thread, attributes, body, argument);
}

namespace tutti::internal {

int take_threads_started() { return started().exchange(0); }

void expect_no_thread_started() {
  EXPECT_EQ(take_threads_started(), 0)
      << "threads that this test program has started, and its tutti_test() does not say THREADS: ThreadSanitizer "
         "would not see them. Say it there.";
}

}  // namespace tutti::internal
