// Ranks of one host where the system lets no process read the memory of another: as in a container whose filter of
// system calls forbids process_vm_readv(), or under Yama. It costs speed only.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <vector>

#include "runtime/conformance.h"
#include "runtime/fake_hosts.h"
#include "runtime/ranks.h"
#include "transport/shm/private_memory.h"

namespace tutti::internal {
namespace {

// Of this process from now on.
void forbid_reading_others() {
  constexpr auto kNumber = static_cast<unsigned>(__NR_process_vm_readv);
  sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kNumber, 0, 1),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  sock_fprog program{.len = std::size(filter), .filter = filter};
  ASSERT_EQ(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
  char to = 0, from = 1;
  const iovec here{&to, 1}, there{&from, 1};
  ASSERT_EQ(::process_vm_readv(::getpid(), &here, 1, &there, 1, 0), -1);
  ASSERT_EQ(errno, EPERM);
}

void expect_all_right(Communicator& world) {
  for (const auto& [shape, form] : covering_calls(world.size(), 2))
    if (!testing::Test::HasFatalFailure())
      expect_right(world, shape, form, expected(shape, world.size())[static_cast<std::size_t>(world.rank())]);
  const int next = (world.rank() + 1) % world.size(), before = (world.rank() + world.size() - 1) % world.size();
  for (const std::size_t count : {1000, 100'000, 3'000'000}) {
    const std::vector<int> out(count, world.rank());
    std::vector<int> in(count, -1);
    Work sends = world.start_send(out.data(), count, DType::int32, next);
    world.receive(in.data(), count, DType::int32, before);
    sends.wait();
    EXPECT_EQ(in, std::vector<int>(count, before));
  }
}

class ReadingForbidden : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_make_hosts()) GTEST_SKIP() << "this process may not make network namespaces";
    shm::assume_reading_is_quick(true);
  }
};

TEST_F(ReadingForbidden, FromTheStartEverythingGoesThroughTheRing) {
  EXPECT_TRUE(run_in_namespace("ip link set lo up", [] {
    forbid_reading_others();
    Communicator::run_threads(3, expect_all_right, "shm");
  }));
}

// As where a job gives up its rights, or goes into a sandbox, once it has joined. The filter is a thread's.
TEST_F(ReadingForbidden, InTheMiddleOfAJobNothingFails) {
  for (const int ranks : {2, 3})
    EXPECT_TRUE(run_in_namespace("ip link set lo up", [&] {
      Communicator::run_threads(
          ranks,
          [](Communicator& world) {
            expect_all_right(world);
            world.barrier();
            if (world.rank() != 1) forbid_reading_others();
            expect_all_right(world);
          },
          "shm");
    }));
}

}  // namespace
}  // namespace tutti::internal
