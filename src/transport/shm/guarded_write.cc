#include "transport/shm/guarded_write.h"

#include <sys/uio.h>

#include <cerrno>

#if defined(__x86_64__) && !defined(__ILP32__)
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <unistd.h>
#define TUTTI_HAS_SEQUENCES 1
#endif
#endif

namespace tutti::internal::shm {

#ifdef TUTTI_HAS_SEQUENCES
namespace {

static_assert(RSEQ_SIG == 0x53053053 && SYS_process_vm_writev == 311);  // the assembly has both numbers

// This thread's; nullptr if it is not registered.
struct rseq* registered_area() {
  if (__rseq_size == 0) return nullptr;
  auto* const area =
      reinterpret_cast<struct rseq*>(static_cast<std::byte*>(__builtin_thread_pointer()) + __rseq_offset);
  return static_cast<std::int32_t>(__atomic_load_n(&area->cpu_id, __ATOMIC_RELAXED)) >= 0 ? area : nullptr;
}

// Not forbidden: of no bytes, so it asks for no process either.
bool is_allowed() {
  const iovec nothing{nullptr, 0};
  return ::process_vm_writev(::getpid(), &nothing, 1, &nothing, 1, 0) == 0;
}

}  // namespace

bool can_write_guarded() {
  static const bool allowed = is_allowed();
  return allowed && registered_area() != nullptr;
}

std::uint64_t time_stamp() { return __builtin_ia32_rdtsc(); }

// What the system has to know of the sequence (linux/rseq.h, struct rseq_cs): version, flags; where it begins, how long
// it is, and where to go on if it was cut. In front of that place there is the signature that the thread is registered
// with, as an operand of an instruction that nobody runs. The system call is the last instruction of the sequence: once
// it has been entered, the sequence is behind.
[[gnu::noinline]] int write_guarded(pid_t process, const std::byte* from, std::uint64_t at, std::size_t bytes,
                                    const std::atomic<std::uint32_t>& stop, Period period) {
  struct rseq* const area = registered_area();
  if (area == nullptr) return ENOSYS;
  const iovec here{const_cast<std::byte*>(from), bytes};
  const iovec there{reinterpret_cast<void*>(static_cast<std::uintptr_t>(at)), bytes};
  // No function is called between here and the system call: it could use these registers.
  register long remote asm("r10") = reinterpret_cast<long>(&there);
  register long remote_ranges asm("r8") = 1;
  register long flags asm("r9") = 0;
  long result = 0;
  asm volatile(
      ".pushsection .data.rel.ro.tutti_rseq, \"aw\"\n\t"
      ".balign 32\n\t"
      "10:\n\t"
      ".long 0, 0\n\t"
      ".quad 1f, 2f - 1f, 3f\n\t"
      ".popsection\n\t"
      "leaq 10b(%%rip), %%rax\n\t"
      "movq %%rax, %[sequence]\n\t"
      "1:\n\t"
      "cmpl $0, %[stop]\n\t"
      "jne 4f\n\t"
      "rdtsc\n\t"
      "shlq $32, %%rdx\n\t"
      "orq %%rdx, %%rax\n\t"
      "subq %[since], %%rax\n\t"
      "cmpq %[cycles], %%rax\n\t"
      "ja 5f\n\t"
      "movl $1, %%edx\n\t"
      "movl $311, %%eax\n\t"
      "syscall\n\t"
      "2:\n\t"
      "jmp 6f\n\t"
      ".byte 0x0f, 0xb9, 0x3d\n\t"
      ".long 0x53053053\n\t"
      "3:\n\t"
      "5:\n\t"
      "movq %[again], %%rax\n\t"
      "jmp 6f\n\t"
      "4:\n\t"
      "movq %[cancelled], %%rax\n\t"
      "6:\n\t"
      "movq $0, %[sequence]\n\t"
      : "=&a"(result), [sequence] "=m"(area->rseq_cs)
      : [stop] "m"(stop), [since] "r"(period.from), [cycles] "r"(period.cycles), [again] "i"(-EAGAIN),
        [cancelled] "i"(-ECANCELED), "D"(process), "S"(&here), "r"(remote), "r"(remote_ranges), "r"(flags)
      : "rcx", "rdx", "r11", "memory", "cc");
  if (result < 0) return static_cast<int>(-result);
  return static_cast<std::size_t>(result) == bytes ? 0 : EFAULT;
}

#else

bool can_write_guarded() { return false; }

std::uint64_t time_stamp() { return 0; }

int write_guarded(pid_t, const std::byte*, std::uint64_t, std::size_t, const std::atomic<std::uint32_t>&, Period) {
  return ENOSYS;
}

#endif

}  // namespace tutti::internal::shm

#undef TUTTI_HAS_SEQUENCES
