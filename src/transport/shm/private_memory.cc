#include "transport/shm/private_memory.h"

#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "memory/between_cores.h"
#include "memory/copy.h"
#include "memory/quickness.h"
#include "transport/shm/guarded_write.h"

namespace tutti::internal::shm {
namespace {

// On an AMD EPYC a ring takes two to three times as long as a copy within the cache, and a read 5 times (64 KiB: 7.1
// and 1.4 us); all_gather of 4 MiB by reads took 1.4 times as long as by rings. On the Intel Xeon of plan_copier.cc
// reads were quicker than rings: 64 KiB took 3 us. How long a copy takes there has not been measured.
constexpr double kQuickCopies = 3;

// How long a proof holds: 0.2 to 0.5 ms, at 2 to 4 GHz. The system does not use the number of a process
// again so soon: it gives numbers in turn, and begins again after 32768 or more. (But another thread of the process may
// make it another program (exec) in the middle of its call.)
constexpr std::uint64_t kProvedCycles = 1 << 20;

Quickness reads;

// Within this process: that costs the system the same.
bool measure_quickness() {
  if (!between_cores().measures_reads) return true;
  constexpr std::size_t kBytes = 64 << 10;
  const std::vector<std::byte> from(kBytes);
  std::vector<std::byte> to(kBytes);
  const iovec here{to.data(), kBytes}, there{const_cast<std::byte*>(from.data()), kBytes};
  const pid_t self = ::getpid();
  if (::process_vm_readv(self, &here, 1, &there, 1, 0) != kBytes) return false;
  const auto read = least_time([&] { ::process_vm_readv(self, &here, 1, &there, 1, 0); });
  const auto copy = least_time([&] { copy_bytes(to.data(), from.data(), kBytes); });
  return read < kQuickCopies * copy;
}

void* address(std::uint64_t at) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(at)); }

}  // namespace

bool reading_is_quick() { return reads.is_quick(measure_quickness); }

void assume_reading_is_quick(bool quick) { reads.assume(quick); }

ProofWord::ProofWord() {
  if (::getrandom(&value_, sizeof value_, 0) != sizeof value_) value_ = 0;
}

PrivateMemory::PrivateMemory(pid_t process, Proof proof) : process_(proof.value != 0 ? process : 0), proof_(proof) {
  if (process_ != 0 && read(nullptr, 0, 0) != 0) process_ = 0;
}

// To ask for the proof in each read takes the older Xeon 0.2 us.
int PrivateMemory::read(std::byte* to, std::uint64_t at, std::size_t bytes) const {
  if (!is_proved()) return read_with_proof(to, at, bytes);
  const iovec here{to, bytes}, there{address(at), bytes};
  const ssize_t got = ::process_vm_readv(process_, &here, 1, &there, 1, 0);
  const int failure = got >= 0 ? (static_cast<std::size_t>(got) == bytes ? 0 : EFAULT) : errno;
  // A process that has the word now had this number during the read, too.
  if ((failure == 0 && is_proved()) || (failure != 0 && failure != EFAULT)) return failure;
  const int gone = read_with_proof(nullptr, 0, 0);
  return gone != 0 ? gone : failure;
}

int PrivateMemory::read_with_proof(std::byte* to, std::uint64_t at, std::size_t bytes) const {
  const std::uint64_t now = time_stamp();
  std::uint64_t proof = 0;
  const iovec here[] = {{&proof, sizeof proof}, {to, bytes}};
  const iovec there[] = {{address(proof_.at), sizeof proof}, {address(at), bytes}};
  const unsigned long parts = bytes > 0 ? 2 : 1;
  const ssize_t got = ::process_vm_readv(process_, here, parts, there, parts, 0);
  if (got < 0 && errno != EFAULT) return errno;
  if (got < static_cast<ssize_t>(sizeof proof) || proof != proof_.value) return ESRCH;
  proved_at_ = now;
  return static_cast<std::size_t>(got) == sizeof proof + bytes ? 0 : EFAULT;
}

bool PrivateMemory::is_proved() const { return proved_at_ != 0 && time_stamp() - proved_at_ <= kProvedCycles; }

bool PrivateMemory::can_be_written() const { return can_be_read() && can_write_guarded(); }

int PrivateMemory::write(const std::byte* from, std::uint64_t at, std::size_t bytes,
                         const std::atomic<std::uint32_t>& stop) const {
  int failure = EAGAIN;
  for (int tries = 0; tries < 4 && failure == EAGAIN; ++tries) {
    failure = is_proved() ? 0 : read_with_proof(nullptr, 0, 0);
    if (failure == 0) failure = write_guarded(process_, from, at, bytes, stop, {proved_at_, kProvedCycles});
  }
  return failure;
}

bool ReadableMemory::has(const std::byte* data, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(data), end = begin + bytes;
  for (const Range& range : known_)
    if (range.begin <= begin && end <= range.end) return true;
  if (is_forbidden_) return false;
  std::byte seen[2];
  const iovec here{seen, sizeof seen};
  const iovec there[] = {{address(begin), 1}, {address(end - 1), 1}};
  if (::process_vm_readv(::getpid(), &here, 1, there, 2, 0) != sizeof seen) {
    is_forbidden_ = errno != EFAULT;
    return false;
  }
  remember({begin, end});
  return true;
}

// Joined with all that it touches, so that the pieces of one buffer become one range.
void ReadableMemory::remember(Range range) {
  Range* free = nullptr;
  for (Range& known : known_) {
    if (known.end != 0 && known.begin <= range.end && range.begin <= known.end) {
      range = {std::min(range.begin, known.begin), std::max(range.end, known.end)};
      known = {};
    }
    if (known.end == 0) free = &known;
  }
  *(free != nullptr ? free : &known_[next_++ % known_.size()]) = range;
}

}  // namespace tutti::internal::shm
