// Start here. A Communicator is an ordered group of ranks that make the same calls in the same order.
//
//   auto world = tutti::Communicator::from_env();  // started by `tutti run -n 4 ./prog`, torchrun, mpirun or srun
//   world.all_reduce(std::span<float>(gradient), tutti::Op::sum);
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "tutti/error.h"
#include "tutti/settings.h"
#include "tutti/store.h"
#include "tutti/types.h"

namespace tutti {

namespace runtime {
class Group;
class Request;
class SymmetricMemory;
}  // namespace runtime

// A pointer, and where it points: to memory of this process, of whatever kind. Pointers convert implicitly.
struct ConstBuffer {
  ConstBuffer(const void* at) : data(at) {}
  ConstBuffer(const void* at, MemoryKind kind, int on_device) : data(at), memory(kind), device(on_device) {}
  const void* data;
  MemoryKind memory = MemoryKind::automatic;
  int device = -1;  // of device and managed memory, as cudaSetDevice() takes it; -1: the driver is asked
};
struct Buffer {
  Buffer(void* at) : data(at) {}
  Buffer(void* at, MemoryKind kind, int on_device) : data(at), memory(kind), device(on_device) {}
  operator ConstBuffer() const { return {data, memory, device}; }
  void* data;
  MemoryKind memory = MemoryKind::automatic;
  int device = -1;
};

// How a call is to be done. Every rank must pass the same values (they are part of what is checked), except `stream`.
struct CallOptions {
  Algorithm algorithm = Algorithm::automatic;
  Order order = Order::canonical;
  // A cudaStream_t: the call returns at once, comes after what the stream was given before, and what it is given later
  // comes after the call; until the stream is past it, the buffers must live and stay untouched. nullptr: the call
  // blocks (or is started), and comes after what the default stream of the buffers' devices was given before; other
  // streams' work on them must be over.
  //
  // A failure does not stop the stream: the communicator's next call throws it, and the Work of a started call. So who
  // must know that a result is right starts the call, and waits for its Work too.
  //
  // Such a call, and a started one of device memory, may block where it is a communicator's first or has a longer
  // message than any before: it makes pinned memory, and waits for the communicator's earlier calls. With
  // CUDA_LAUNCH_BLOCKING=1, or where the job has one rank, a call on a stream always may.
  //
  // cudaStreamLegacy and cudaStreamPerThread name default streams here. In a build with CUDA before 12.8 the stream
  // must be of the thread's current device. A stream that is being captured is refused with Error{unsupported}. Calls
  // of several communicators on one stream are made in one order by all ranks, or they wait for each other.
  void* stream = nullptr;
};

// A started operation. Movable; waits for the operation in its destructor: an error that nothing has thrown is
// then logged (Settings::log_sink) when the communicator is left.
// Not thread-safe. The buffers of the call must live and stay untouched until wait() has returned, and until its
// stream, if it has one, has come past the call.
class Work {
 public:
  Work();
  Work(Work&&) noexcept;
  Work& operator=(Work&&) noexcept;
  ~Work();

  // Advances whatever can be advanced without blocking; true once the operation is complete. Throws like wait().
  bool test();

  // Blocks until the operation is complete. Throws the operation's Error; calling it again throws the same again.
  void wait();

 private:
  friend class Communicator;
  explicit Work(std::shared_ptr<runtime::Request> request);
  std::shared_ptr<runtime::Request> request_;
};

// Memory that every rank of this host maps, so that peers read and write it directly. Valid as long as the Memory
// lives.
class Memory {
 public:
  Memory();
  Memory(Memory&&) noexcept;
  Memory& operator=(Memory&&) noexcept;
  ~Memory();
  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  template <class T>
  std::span<T> as() const {
    return {static_cast<T*>(data_), bytes_ / sizeof(T)};
  }

 private:
  friend class Communicator;
  std::shared_ptr<runtime::SymmetricMemory> owner_;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// The caller's own memory, made known to the RDMA device: while this lives, large messages in it are sent from where
// they lie and written to where they belong, without a copy. It must be neither freed nor unmapped meanwhile.
class Registration {
 public:
  Registration();
  Registration(Registration&&) noexcept;
  Registration& operator=(Registration&&) noexcept;
  ~Registration();

 private:
  friend class Communicator;
  std::shared_ptr<void> owner_;
};

// Thread safety: calls on one communicator must come from one thread at a time, in the same order on every rank;
// different communicators may be used from different threads at once. With device memory, calls on several
// communicators wait on the GPU for their peers, so all ranks should make them in one order: CUDA puts many streams
// into few queues (CUDA_DEVICE_MAX_CONNECTIONS).
//
// Collectives: `count` counts elements, and size() * count is below 2^48. Input and output are aligned to their element
// type; they do not overlap, or are in place as each call says; they may be null where count is 0. All but the buffers
// and the stream is the same on every rank, else Error{mismatch}.
//
// Once a call is done or has thrown, no peer touches this rank's buffers. For that, a call that fails waits for a peer
// that was stopped in the middle of it, ten seconds at most, and then as long again for its own GPU. If the peer is
// still stopped then, memory of allocate() is never handed out again. If the GPU is not done then, it may still read
// the input and overwrite the output: synchronise the device before freeing them.
//
// fork(): the child has no part in the job. Every call in it throws Error{unsupported} and disturbs nobody; symmetric
// memory is still shared with the parent. It may join another job.
//
// Errors: what is thrown before a call has begun leaves the communicator usable. That is Error{invalid_argument} and
// {unsupported}; and {system} of register_memory(), of allocate(), and of a call on device memory or a stream to which
// CUDA then refuses something, pinned memory for one. This rank has not made the call, and its peers wait for it,
// Settings::timeout at most, unless it makes the call after all or calls abort(); but what allocate() throws, it throws
// on all ranks. Any other error leaves output buffers unspecified and the communicator failed: every later call throws
// the same error. No call, test() included, waits longer than Settings::timeout for a peer that does nothing.
class Communicator {
 public:
  // Joins the job described by the environment (Settings::from_env) or by `settings`. Blocks until all ranks have
  // joined, at most a moment longer than Settings::join_timeout. Each has a rank of its own; size, transport, timeout,
  // secret and meeting place are the same. Throws Error{invalid_argument, unsupported, system, unreachable, refused,
  // timeout, peer_lost}: what rank 0 finds wrong, on every rank that has come.
  static Communicator from_env();
  static Communicator join(const Settings& settings);

  // Joins through the caller's own store; settings.rank and .size say who. master_address and master_port are ignored.
  static Communicator join(const Settings& settings, Store& store);

  // n ranks as threads of one process: runs body(communicator) on one thread a rank; rethrows the first error. Where
  // all buffers of a call lie on one GPU, one kernel does it. A call on a stream waits until all ranks have entered it.
  // The ranks share each GPU's default stream: streams of theirs are best made with cudaStreamNonBlocking. transport:
  // "inproc" (the simplest; for tests and for reading), "shm" or "tcp". Other settings are the defaults,
  // whatever the environment says.
  static void run_threads(int ranks, const std::function<void(Communicator&)>& body,
                          const std::string& transport = "inproc");

  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) noexcept;
  // As finalize(), but does not wait for what that finds out and cannot throw: a mismatch is logged, and makes
  // the exit status of `tutti run` 1. Blocks until the communicator's calls on streams are over, and its started ones
  // of device memory. With the last communicator of a job, and the last Work, this rank leaves the job: it waits until
  // the others' processes have heard that, a second at most, and not for the ranks themselves. exit() and quick_exit()
  // leave jobs that are not left yet.
  ~Communicator();

  // Leaves the communicator, once started operations are over. Not collective: it waits for no rank, but for word from
  // the process of rank 0. Throws Error{mismatch} where a rank that left before had made other calls: so, if two ranks
  // made different calls and no call has shown it, the one that leaves later throws. (Where rank 0 has left the job
  // first, that holds for communicators which some rank left before it did.) Throws the communicator's failure, if it
  // has failed. Afterwards it is as one that was moved from.
  void finalize();

  int rank() const;
  int size() const;

  // out[0, count) on every rank = the reduction over all ranks of in[0, count). In place: out == in.
  void all_reduce(ConstBuffer in, Buffer out, std::size_t count, DType dtype, Op op, const CallOptions& options = {});

  // out[0, count) on rank r = the reduction over all ranks of in[r * count, (r + 1) * count); in holds size() * count.
  // In place: out == in + rank() * count.
  void reduce_scatter(ConstBuffer in, Buffer out, std::size_t count, DType dtype, Op op,
                      const CallOptions& options = {});

  // out[r * count, (r + 1) * count) on every rank = in[0, count) of rank r; out holds size() * count.
  // In place: in == out + rank() * count.
  void all_gather(ConstBuffer in, Buffer out, std::size_t count, DType dtype, const CallOptions& options = {});

  // buffer[0, count) on every rank = that of rank `root`.
  void broadcast(Buffer buffer, std::size_t count, DType dtype, int root, const CallOptions& options = {});

  // Returns once every rank has entered.
  void barrier(const CallOptions& options = {});

  // The same, started: they return at once. Operations of one communicator run in the order they were started; they
  // advance inside test() and wait() of any Work and inside any blocking call of this process's job, and those of
  // device memory by themselves.
  Work start_all_reduce(ConstBuffer in, Buffer out, std::size_t count, DType dtype, Op op,
                        const CallOptions& options = {});
  Work start_reduce_scatter(ConstBuffer in, Buffer out, std::size_t count, DType dtype, Op op,
                            const CallOptions& options = {});
  Work start_all_gather(ConstBuffer in, Buffer out, std::size_t count, DType dtype, const CallOptions& options = {});
  Work start_broadcast(Buffer buffer, std::size_t count, DType dtype, int root, const CallOptions& options = {});
  Work start_barrier(const CallOptions& options = {});

  // In place, typed: values[0, size) on every rank.
  template <class T>
  void all_reduce(std::span<T> values, Op op, const CallOptions& options = {}) {
    all_reduce(values.data(), values.data(), values.size(), dtype_of<T>, op, options);
  }
  template <class T>
  void broadcast(std::span<T> values, int root, const CallOptions& options = {}) {
    broadcast(values.data(), values.size(), dtype_of<T>, root, options);
  }

  // Collective. Ranks that pass the same non-negative color form a new communicator, ordered by (key, rank here).
  // A negative color takes part and gets a communicator of itself alone. Over shared memory a rank can have 4096
  // channels at a time, one for each communicator and peer that a call has talked to, and 32,000 in all: a call that
  // needs more fails with Error{system}.
  Communicator split(int color, int key = 0);

  // Collective: every rank asks for the same number of bytes. Buffers inside the result are read and written by the
  // peers of this host directly. The start is aligned to 4096. No space is Error{system} on every rank: of shared
  // memory a rank gets 64 GiB in all, less what its calls need, and what it frees is handed out again for the same size
  // alone.
  Memory allocate(std::size_t bytes);

  // Not collective: a rank registers what it likes, when it likes, for all communicators of its job. data[0, bytes) may
  // be host memory of any kind; what allocate() gives is registered already. Takes time (about a second a GiB) and
  // locked memory. Where this rank uses no RDMA, nothing happens. Error{system} where the device or the memlock limit
  // refuses.
  Registration register_memory(void* data, std::size_t bytes);

  // Fails this communicator on every rank with Error{aborted} carrying `reason`. Thread-safe. Once rank 0 has left the
  // job, the others hear of it only by this rank's closed connections.
  void abort(const std::string& reason);

  // The algorithm that a call would use, as the communicator's table says.
  Algorithm choose(Collective collective, std::size_t count, DType dtype, Order order = Order::canonical) const;

  // That table, as text: rank 0's (Settings::table) or the built-in one, the same on every rank of the job.
  std::string table() const;

 private:
  explicit Communicator(std::shared_ptr<runtime::Group> group);
  std::shared_ptr<runtime::Group> group_;
};

}  // namespace tutti
