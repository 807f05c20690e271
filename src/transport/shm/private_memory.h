// Memory of a process that is not shared, as another process of the host reads and writes it: in one copy, by the
// system.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tutti::internal::shm {

// A word that only the right process has at that address. A child that it forks later has it too, under another number.
struct Proof {
  std::uint64_t at, value;
};

// Such a word, random. It proves nothing once this is destroyed.
class ProofWord {
 public:
  ProofWord();
  ProofWord(const ProofWord&) = delete;
  ProofWord& operator=(const ProofWord&) = delete;
  Proof proof() const { return {reinterpret_cast<std::uintptr_t>(&value_), value_}; }

 private:
  std::uint64_t value_ = 0;  // 0: the system had no random bytes, and this proves nothing
};

// Of the process with the number `process`. Read by process_vm_readv(), which the system allows as it allows debugging:
// to the same user, if neither Yama nor a filter of system calls forbids it.
class PrivateMemory {
 public:
  PrivateMemory() = default;  // cannot be read
  PrivateMemory(pid_t process, Proof proof);

  bool can_be_read() const { return process_ != 0; }
  // to[0, bytes) = [at, at + bytes) of the process, less than 2 GiB: 0, else errno, and then `to` may have been written
  // to. ESRCH: the process is gone, also where another one has its number by now: the proof comes with the bytes, or
  // was there up to 0.5 ms before. (A process that becomes another program within that time may be read.) EFAULT: the
  // system cannot read all of it, or cannot write all of `to`.
  int read(std::byte* to, std::uint64_t at, std::size_t bytes) const;

  // By this thread.
  bool can_be_written() const;
  // [at, at + bytes) of the process = from[0, bytes), less than 2 GiB: as read(). ECANCELED: not written, since `stop`
  // is not 0. EAGAIN: not written, perhaps next time. Nothing is written once `stop` is not 0 (write_guarded()).
  int write(const std::byte* from, std::uint64_t at, std::size_t bytes, const std::atomic<std::uint32_t>& stop) const;

 private:
  int read_with_proof(std::byte* to, std::uint64_t at, std::size_t bytes) const;
  bool is_proved() const;  // still

  pid_t process_ = 0;
  Proof proof_{};
  mutable std::uint64_t proved_at_ = 0;  // a time stamp; 0: never, or there are none here
};

// Whether a peer's private memory is read sooner than it comes through a ring. This depends on the processor and on the
// system: a read costs the system some work for every page, and a ring costs two ranks a copy each, at once. The first
// call measures it, in some 100 us, for as long as the process lives. If BetweenCores::measures_reads is
// false, nothing is measured, and reads are taken to be quick.
bool reading_is_quick();
// For tests: no measurement, from now on.
void assume_reading_is_quick(bool quick);

// Of this process: which memory the system can read for others. It cannot where a device lies behind an address.
class ReadableMemory {
 public:
  // Asks the system for what it has not been asked for lately. Of [data, data + bytes) it looks at both ends.
  bool has(const std::byte* data, std::size_t bytes);

 private:
  struct Range {
    std::uintptr_t begin = 0, end = 0;
  };
  void remember(Range range);

  std::array<Range, 8> known_{};  // none touches another
  std::size_t next_ = 0;          // of known_, to be replaced
  bool is_forbidden_ = false;     // to ask
};

}  // namespace tutti::internal::shm
