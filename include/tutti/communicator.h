/// @file
/// Start here. A Communicator is an ordered group of ranks that make the same calls in the same order.
///
///     auto world = tutti::Communicator::from_env();  // started by `tutti run -n 4 ./prog`, torchrun, mpirun or srun
///     world.all_reduce(std::span<float>(gradient), tutti::Op::sum);
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "tutti/error.h"
#include "tutti/export.h"
#include "tutti/settings.h"
#include "tutti/store.h"
#include "tutti/types.h"

/// All that programs use of the library.
namespace tutti {

namespace internal {
struct AnyCall;
struct JoinByAppointment;
class Group;
class Request;
class SymmetricMemory;
}  // namespace internal

/// Memory of this process that a call reads: a pointer, and the kind of memory. Pointers convert implicitly. A value:
/// it owns nothing.
struct ConstBuffer {
  /// The driver is asked for the kind of memory.
  ConstBuffer(const void* at) : data(at) {}
  /// The caller knows the kind of memory, and the device of device and managed memory.
  ConstBuffer(const void* at, MemoryKind kind, int on_device) : data(at), memory(kind), device(on_device) {}
  const void* data;                           ///< the first element; may be null if there are none
  MemoryKind memory = MemoryKind::automatic;  ///< the kind of memory
  int device = -1;  ///< of device and managed memory, as cudaSetDevice() takes it; -1: the driver is asked
};
/// Memory of this process that a call writes. Otherwise as ConstBuffer.
struct Buffer {
  /// The driver is asked for the kind of memory.
  Buffer(void* at) : data(at) {}
  /// The caller knows the kind of memory, and the device of device and managed memory.
  Buffer(void* at, MemoryKind kind, int on_device) : data(at), memory(kind), device(on_device) {}
  /// The same memory, to be read.
  operator ConstBuffer() const { return {data, memory, device}; }
  void* data;                                 ///< as ConstBuffer::data
  MemoryKind memory = MemoryKind::automatic;  ///< the kind of memory
  int device = -1;                            ///< as ConstBuffer::device
};

/// How a call is done. Every rank must pass the same values, except `stream`: the call checks them.
struct CallOptions {
  Algorithm algorithm = Algorithm::automatic;  ///< the algorithm of the call
  Order order = Order::canonical;              ///< the order in which inputs are combined

  /// A cudaStream_t, or nullptr.
  ///
  /// With a stream the call returns at once. It runs after the work that the stream already has; work that the stream
  /// gets later runs after the call. Until the stream has passed the call, the buffers must live and stay untouched.
  ///
  /// With nullptr the call blocks, or is started. It runs after the work that the default streams of the buffers'
  /// devices already have. Work of other streams on the buffers must be over.
  ///
  /// Failure: it does not stop the stream. The next call on the communicator throws the failure, and so does the Work
  /// of a started call. A caller that must know whether the result is right starts the call, and waits for its Work.
  ///
  /// Blocking: a call with a stream, and a started call of device memory, may block if it is the first of its
  /// communicator, or if its message is longer than any before: then it makes pinned memory, and waits for the earlier
  /// calls of the communicator. With CUDA_LAUNCH_BLOCKING=1, and in a job of one rank, a call with a stream may always
  /// block.
  ///
  /// cudaStreamLegacy and cudaStreamPerThread name default streams here. In a build with CUDA before 12.8 the stream
  /// must be of the thread's current device. A stream that is being captured is refused with Error{unsupported}. If
  /// several communicators have calls on one stream, all ranks make these calls in one order, or they wait for each
  /// other.
  void* stream = nullptr;
};

/// A started call. Movable. Not thread-safe.
///
/// The buffers of the call must live and stay untouched until wait() has returned and, if the call has a stream, until
/// the stream has passed the call. Without a call (made by Work(), or moved from), test() returns true and wait()
/// returns at once.
class Work {
 public:
  TUTTI_API Work();                            ///< without a call
  TUTTI_API Work(Work&&) noexcept;             ///< takes over the call
  TUTTI_API Work& operator=(Work&&) noexcept;  ///< first waits for the call that was here, as the destructor does
  /// Blocks until the call is complete. It throws nothing: if nobody has thrown the call's error by the time the
  /// communicator is left, the error is logged then (Settings::log_sink).
  TUTTI_API ~Work();

  /// Advances what can advance without blocking. True once the call is complete. Throws like wait().
  TUTTI_API bool test();

  /// Blocks until the call is complete. Throws the Error of the call. Calling it again gives the same result again.
  TUTTI_API void wait();

 private:
  friend class Communicator;
  friend struct internal::AnyCall;
  explicit Work(std::shared_ptr<internal::Request> request);
  std::shared_ptr<internal::Request> request_;
};

/// Memory that every rank of this host maps, so that peers read and write it directly. Movable. The memory is valid as
/// long as this object lives; made by Memory() or moved from, it has none.
class Memory {
 public:
  TUTTI_API Memory();                              ///< no memory
  TUTTI_API Memory(Memory&&) noexcept;             ///< takes over the memory
  TUTTI_API Memory& operator=(Memory&&) noexcept;  ///< frees the memory that was here
  TUTTI_API ~Memory();                             ///< frees the memory: no call may still use it

  void* data() const { return data_; }          ///< the first byte, aligned to 4096
  std::size_t bytes() const { return bytes_; }  ///< as many as allocate() was asked for
  /// The memory as elements: [0, bytes() / sizeof(T)).
  template <class T>
  std::span<T> as() const {
    return {static_cast<T*>(data_), bytes_ / sizeof(T)};
  }

 private:
  friend class Communicator;
  std::shared_ptr<internal::SymmetricMemory> owner_;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Memory of the caller that the RDMA device knows. While this object lives, large messages in that memory are sent
/// from where they lie and written to their place, without a copy. Until then the memory must be neither freed nor
/// unmapped. Movable.
class Registration {
 public:
  TUTTI_API Registration();                                    ///< registers nothing
  TUTTI_API Registration(Registration&&) noexcept;             ///< takes over the registration
  TUTTI_API Registration& operator=(Registration&&) noexcept;  ///< ends the registration that was here
  TUTTI_API ~Registration();                                   ///< ends the registration

 private:
  friend class Communicator;
  std::shared_ptr<void> owner_;
};

/// An ordered group of ranks that make the same calls in the same order.
///
/// **Threads.** Calls on one communicator come from one thread at a time, in the same order on every rank. Several
/// threads may use different communicators at once. With device memory, calls of several communicators wait on the GPU
/// for their peers. So all ranks should make these calls in one order: CUDA puts many streams into few queues
/// (CUDA_DEVICE_MAX_CONNECTIONS).
///
/// **Shapes.** `count` counts elements; size() * count is below 2^48. Input and output are aligned to their element
/// type. They do not overlap, or are in place as each call says. They may be null if count is 0. A buffer that a rank
/// does not have in a call, as the call says, may be anything. All arguments but the buffers and the stream are the
/// same on every rank, else Error{mismatch}.
///
/// **Blocking.** A collective without a stream blocks until it is done on this rank. It may return before it is done on
/// other ranks; only barrier() says anything of these.
///
/// **Buffers after a call.** Once a call is done or has thrown, no peer touches this rank's buffers. For that, a call
/// that fails waits up to ten seconds for a peer that was stopped in the middle of it, and then up to ten seconds for
/// its own GPU. If the peer is still stopped then, memory of allocate() is never handed out again. If the GPU is still
/// busy then, it may still read the input and overwrite the output: synchronise the device before you free them.
///
/// **Errors before the call.** Three kinds of error leave the communicator usable: Error{invalid_argument},
/// Error{unsupported}, and the Error{system} of register_memory(), of allocate(), and of a call on device memory or a
/// stream for which CUDA refuses something, for example pinned memory. This rank has not made the call then. Its peers
/// wait for it, at most Settings::timeout, unless it makes the call after all or calls abort(). What allocate() throws,
/// it throws on all ranks.
///
/// **Errors during the call.** Every other error is final: the communicator has failed, output buffers are unspecified,
/// and every later call throws the same error.
///
/// **Waiting.** No call, test() included, waits longer than Settings::timeout for a peer that does nothing.
///
/// **fork().** The child has no part in the job. Every call in it, also of a Work, throws Error{unsupported} and
/// disturbs nobody; rank(), size(), choose() and table() still answer. What is destroyed in the child does nothing to
/// the parent or its peers. Symmetric memory is still shared with the parent. The child may join another job.
///
/// **Moved from.** A communicator that was moved from, or finalized, can only be destroyed, assigned to or finalized.
class Communicator {
 public:
  /// Joins the job that the environment describes (Settings::from_env()). Otherwise as join().
  TUTTI_API static Communicator from_env();
  /// Joins a job: the ranks meet at settings.master_address. Each rank passes its own `rank`; size, transport, timeout,
  /// secret and meeting place are the same on every rank.
  ///
  /// Blocks until all ranks have joined, at most a moment longer than Settings::join_timeout. Throws
  /// Error{invalid_argument, unsupported, system, unreachable, refused, timeout, peer_lost}. Every rank that has come
  /// throws what rank 0 finds wrong.
  TUTTI_API static Communicator join(const Settings& settings);

  /// Joins through the caller's own store, which must live until join() returns. Ignores settings.master_address and
  /// settings.master_port. Otherwise as above.
  TUTTI_API static Communicator join(const Settings& settings, Store& store);

  /// Runs a job whose ranks are threads of this process: body(communicator) on one thread for each rank [0, ranks).
  /// Blocks until all have returned. If a body throws, that communicator is aborted; the first exception is thrown
  /// again here.
  ///
  /// transport: "inproc" (the simplest: for tests, and for reading), "shm" or "tcp". Other settings are the defaults,
  /// whatever the environment says.
  ///
  /// If all buffers of a call lie on one GPU, one kernel does the call. A call on a stream waits until all ranks have
  /// entered it. The ranks share each GPU's default stream, so make their own streams with cudaStreamNonBlocking.
  TUTTI_API static void run_threads(int ranks, const std::function<void(Communicator&)>& body,
                                    const std::string& transport = "inproc");

  TUTTI_API Communicator(Communicator&&) noexcept;             ///< takes over the membership
  TUTTI_API Communicator& operator=(Communicator&&) noexcept;  ///< first leaves what was here, as the destructor does
  /// Leaves the communicator, like finalize(), but does not wait for the verdict on its calls, and cannot throw. It
  /// logs a mismatch, which makes the exit status of `tutti run` 1.
  ///
  /// Blocks until the calls of the communicator on streams, and its started calls of device memory, are over. With the
  /// last communicator of a job and the last Work, this rank leaves the job: it waits at most a second until the
  /// processes of the other ranks have heard so. It does not wait for the ranks themselves. exit() and quick_exit()
  /// leave all jobs that the process has not left.
  TUTTI_API ~Communicator();

  /// Leaves the communicator once its started calls are over. Afterwards it is as one that was moved from.
  ///
  /// Not collective: it waits for no rank, only for an answer from the process of rank 0. Throws the communicator's
  /// failure, if it has failed. Throws Error{mismatch} if a rank that left before had made other calls. So if two ranks
  /// made different calls, and no call has shown it, the one that leaves later throws. (If rank 0 has left the job,
  /// that holds for communicators which some rank left before rank 0 did.)
  TUTTI_API void finalize();

  TUTTI_API int rank() const;  ///< the number of this rank here, [0, size())
  TUTTI_API int size() const;  ///< how many ranks there are

  /// out[0, count) on every rank = the reduction over all ranks of in[0, count). In place: out == in.
  TUTTI_API void all_reduce(ConstBuffer in, Buffer out, std::size_t count, DType dtype, Op op,
                            const CallOptions& options = {});

  /// out[0, count) on rank r = the reduction over all ranks of in[r * count, (r + 1) * count). `in` holds
  /// size() * count elements. In place: out == in + rank() * count.
  TUTTI_API void reduce_scatter(ConstBuffer in, Buffer out, std::size_t count, DType dtype, Op op,
                                const CallOptions& options = {});

  /// out[r * count, (r + 1) * count) on every rank = in[0, count) of rank r. `out` holds size() * count elements.
  /// In place: in == out + rank() * count.
  TUTTI_API void all_gather(ConstBuffer in, Buffer out, std::size_t count, DType dtype,
                            const CallOptions& options = {});

  /// buffer[0, count) on every rank = buffer[0, count) of rank `root`.
  TUTTI_API void broadcast(Buffer buffer, std::size_t count, DType dtype, int root, const CallOptions& options = {});
  /// out[0, count) on every rank = in[0, count) of rank `root`. Other ranks' `in` is not looked at. In place: out ==
  /// in.
  TUTTI_API void broadcast(ConstBuffer in, Buffer out, std::size_t count, DType dtype, int root,
                           const CallOptions& options = {});

  /// out[0, count) on rank `root` = the reduction over all ranks of in[0, count), with the same bits for every root as
  /// all_reduce gives. Other ranks' `out` is not looked at. In place, on the root: out == in.
  TUTTI_API void reduce(ConstBuffer in, Buffer out, std::size_t count, DType dtype, Op op, int root,
                        const CallOptions& options = {});

  /// out[r * count, (r + 1) * count) on rank `root` = in[0, count) of rank r. Its `out` holds size() * count elements;
  /// other ranks' `out` is not looked at. In place, on the root: in == out + root * count.
  TUTTI_API void gather(ConstBuffer in, Buffer out, std::size_t count, DType dtype, int root,
                        const CallOptions& options = {});

  /// out[0, count) on rank r = in[r * count, (r + 1) * count) of rank `root`. Its `in` holds size() * count elements;
  /// other ranks' `in` is not looked at. In place, on the root: out == in + root * count.
  TUTTI_API void scatter(ConstBuffer in, Buffer out, std::size_t count, DType dtype, int root,
                         const CallOptions& options = {});

  /// out[0, count) on rank r = the reduction over the ranks [0, r + 1) of in[0, count): what all_reduce would give
  /// these ranks alone. Op::avg divides by r + 1. In place: out == in.
  TUTTI_API void scan(ConstBuffer in, Buffer out, std::size_t count, DType dtype, Op op,
                      const CallOptions& options = {});

  /// out[0, count) on rank r > 0 = the reduction over the ranks [0, r) of in[0, count). Op::avg divides by r. The `out`
  /// of rank 0 is not looked at. In place: out == in; rank 0 then keeps its input.
  TUTTI_API void exclusive_scan(ConstBuffer in, Buffer out, std::size_t count, DType dtype, Op op,
                                const CallOptions& options = {});

  /// Returns once every rank has entered it.
  TUTTI_API void barrier(const CallOptions& options = {});

  /// @name Started calls
  /// @{

  /// The same calls; these return at once. The started calls of one communicator run in the order in which they were
  /// started. They advance inside test() and wait() of any Work, and inside any blocking call of this rank's job. Calls
  /// of device memory also advance by themselves.
  TUTTI_API Work start_all_reduce(ConstBuffer in, Buffer out, std::size_t count, DType dtype, Op op,
                                  const CallOptions& options = {});
  TUTTI_API Work start_reduce_scatter(ConstBuffer in, Buffer out, std::size_t count, DType dtype, Op op,
                                      const CallOptions& options = {});
  TUTTI_API Work start_all_gather(ConstBuffer in, Buffer out, std::size_t count, DType dtype,
                                  const CallOptions& options = {});
  TUTTI_API Work start_broadcast(Buffer buffer, std::size_t count, DType dtype, int root,
                                 const CallOptions& options = {});
  TUTTI_API Work start_broadcast(ConstBuffer in, Buffer out, std::size_t count, DType dtype, int root,
                                 const CallOptions& options = {});
  TUTTI_API Work start_reduce(ConstBuffer in, Buffer out, std::size_t count, DType dtype, Op op, int root,
                              const CallOptions& options = {});
  TUTTI_API Work start_gather(ConstBuffer in, Buffer out, std::size_t count, DType dtype, int root,
                              const CallOptions& options = {});
  TUTTI_API Work start_scatter(ConstBuffer in, Buffer out, std::size_t count, DType dtype, int root,
                               const CallOptions& options = {});
  TUTTI_API Work start_scan(ConstBuffer in, Buffer out, std::size_t count, DType dtype, Op op,
                            const CallOptions& options = {});
  TUTTI_API Work start_exclusive_scan(ConstBuffer in, Buffer out, std::size_t count, DType dtype, Op op,
                                      const CallOptions& options = {});
  TUTTI_API Work start_barrier(const CallOptions& options = {});
  /// @}

  /// @name Typed calls, in place
  /// @{

  /// values[0, size) on every rank.
  template <class T>
  void all_reduce(std::span<T> values, Op op, const CallOptions& options = {}) {
    all_reduce(values.data(), values.data(), values.size(), dtype_of<T>, op, options);
  }
  template <class T>
  void broadcast(std::span<T> values, int root, const CallOptions& options = {}) {
    broadcast(values.data(), values.size(), dtype_of<T>, root, options);
  }
  /// @}

  /// Collective. Ranks that pass the same non-negative color form a new communicator, ordered by (key, rank here). A
  /// rank that passes a negative color takes part, and gets a communicator of itself alone.
  ///
  /// A rank has one channel for each communicator and peer that a call has talked to. Over shared memory it can have
  /// 4096 channels at a time, and 32,000 in the life of the job. A call that needs more fails with Error{system}.
  TUTTI_API Communicator split(int color, int key = 0);

  /// Collective: every rank asks for the same number of bytes. The peers of this host read and write buffers in the
  /// result directly. Its start is aligned to 4096.
  ///
  /// If there is no space, every rank throws Error{system}, and the communicator stays usable. A rank has 64 GiB of
  /// shared memory in all, less what its calls need. Freed memory is used again only for a request of the same size.
  TUTTI_API Memory allocate(std::size_t bytes);

  /// Registers data[0, bytes) with the RDMA device, for all communicators of the job. Not collective: a rank registers
  /// what it likes, when it likes. The memory may be host memory of any kind; memory of allocate() is registered
  /// already.
  ///
  /// Blocks for about a second for each GiB, and takes locked memory. If this rank uses no RDMA, nothing happens.
  /// Throws Error{system} if the device or the memlock limit refuses; the communicator stays usable.
  TUTTI_API Registration register_memory(void* data, std::size_t bytes);

  /// Fails this communicator on every rank with Error{aborted}, which carries `reason`. Does not block. Thread-safe:
  /// also during a call of another thread. If rank 0 has left the job, the other ranks find out only by this rank's
  /// closed connections.
  TUTTI_API void abort(const std::string& reason);

  /// Why the next call here would throw; nothing if the communicator is well, or was moved from or finalized. Does not
  /// block. Thread-safe: also during a call of another thread. A lost rank is told at once, although calls that were
  /// made before it was lost may still end well. Throws Error{unsupported} in a forked child.
  TUTTI_API std::optional<Error> failure() const;

  /// The algorithm that such a call uses if it names none. `count` as in the call. Not collective.
  TUTTI_API Algorithm choose(Collective collective, std::size_t count, DType dtype,
                             Order order = Order::canonical) const;

  /// The job's table of algorithms as text: rank 0's (Settings::table), or the built-in one. Not collective.
  TUTTI_API std::string table() const;

 private:
  friend struct internal::AnyCall;
  friend struct internal::JoinByAppointment;
  explicit Communicator(std::shared_ptr<internal::Group> group);
  std::shared_ptr<internal::Group> group_;
};

}  // namespace tutti
