/// @file
/// Start here. A Communicator is an ordered group of ranks that make the same calls in the same order.
///
///     auto world = tutti::Communicator::from_env();  // started by `tutti run -n 4 ./prog`, torchrun, mpirun or srun
///     world.all_reduce(std::span<float>(gradient), tutti::Op::sum);
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "tutti/call.h"
#include "tutti/error.h"
#include "tutti/export.h"
#include "tutti/group.h"
#include "tutti/operator.h"
#include "tutti/settings.h"
#include "tutti/store.h"
#include "tutti/types.h"
#include "tutti/work.h"

/// All that programs use of the library.
namespace tutti {

namespace internal {
struct AnyCall;
struct JoinByAppointment;
class Group;
class Request;
class SymmetricMemory;
}  // namespace internal

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

/// Memory of the caller that was registered or adopted. While this object lives, large messages in that memory are sent
/// from where they lie and written to their place, without a copy. Until then the memory must be neither freed nor
/// unmapped. Movable.
class Registration {
 public:
  TUTTI_API Registration();                                    ///< registers nothing
  TUTTI_API Registration(Registration&&) noexcept;             ///< takes over the registration
  TUTTI_API Registration& operator=(Registration&&) noexcept;  ///< ends the registration that was here
  TUTTI_API ~Registration();                                   ///< ends the registration: no call may still use it

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
/// does not have in a call, as the call says, may be anything. All arguments are the same on
/// every rank, else Error{mismatch}; but not the buffers, their rows, the stream, the timeout, and a premul_sum's
/// scalar.
///
/// **Blocking.** A collective without a stream blocks until it is done on this rank. It may return before it is done on
/// other ranks; only barrier() says anything of these.
///
/// **Buffers after a call.** Once a call is done or has thrown, no peer touches this rank's buffers. For that, a call
/// that fails waits up to ten seconds for a peer that was stopped in the middle of it, and then up to ten seconds for
/// its own GPU. If the peer is still stopped then, memory of allocate() is never handed out again, and adopted memory
/// is private from then on. If the GPU is still busy then, it may still read the input and overwrite the output:
/// synchronise the device before you free them.
///
/// **Errors before the call.** Three kinds of error leave the communicator usable: Error{invalid_argument},
/// Error{unsupported}, and the Error{system} of register_memory(), of adopt(), of allocate(), and of a call on device
/// memory or a stream for which CUDA refuses something, for example pinned memory. This rank has not made the call
/// then. Its peers wait for it, at most Settings::timeout, unless it makes the call after all or calls abort(). What
/// split(), allocate() and make_operator() throw after all have called them, they throw on all ranks.
///
/// **Errors during the call.** Every other error is final: the communicator has failed, output buffers are unspecified,
/// and every later call throws the same error.
///
/// **Waiting.** No call, test() included, waits longer than its timeout for a peer that does nothing:
/// Work::set_timeout(), else CallOptions::timeout, else set_timeout(), else Settings::timeout. Then it asks who is to
/// blame, mostly for milliseconds, and for 3 s at most.
///
/// **fork().** The child has no part in the job. Every call in it, also of a Work, throws Error{unsupported} and
/// disturbs nobody; rank(), size(), choose() and table() still answer. What is destroyed in the child does nothing to
/// the parent or its peers. The memory of allocate() and of adopt() is still shared with the parent. The child may join
/// another job.
///
/// **Moved from.** A communicator that was moved from, or finalized, can only be destroyed, assigned to or finalized.
class Communicator {
 public:
  /// Joins the job that the environment describes (Settings::from_env()). Otherwise as join().
  TUTTI_API static Communicator from_env();
  /// Joins a job: the ranks meet at settings.master_address. Each rank passes its own `rank`; size, transport, timeout,
  /// heartbeat timeout, secret and meeting place are the same on every rank.
  ///
  /// Blocks until all ranks have joined, at most a moment longer than Settings::join_timeout. Throws
  /// Error{invalid_argument, unsupported, system, unreachable, refused, timeout, peer_lost}. Every rank that has come
  /// throws what rank 0 finds wrong.
  TUTTI_API static Communicator join(const Settings& settings);

  /// Joins through the caller's own store, which must live until join() returns. Ignores settings.master_address and
  /// settings.master_port. Otherwise as join() without one.
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
  /// Blocks for these calls, and for an answer from the process of the lowest rank that is there. Not collective: it
  /// waits for no rank. Throws the communicator's failure, if it has failed. (If a rank is lost, and no call has failed
  /// by that, it does not throw.) Throws Error{mismatch} if a rank that left before had made other calls. So if two
  /// ranks made different calls, and no call has shown it, the one that leaves later throws, and so do all that have
  /// not left by then, in their next call or here.
  TUTTI_API void finalize();

  TUTTI_API int rank() const;                    ///< the number of this rank here, [0, size())
  TUTTI_API std::vector<int> job_ranks() const;  ///< the number in the job of each rank here
  TUTTI_API int size() const;                    ///< how many ranks there are

  /// out[0, count) on every rank = the reduction over all ranks of in[0, count). In place: out == in.
  TUTTI_API void all_reduce(ConstBuffer in, Buffer out, std::size_t count, DType dtype, const Operator& op,
                            const CallOptions& options = {});

  /// out[0, count) on rank r = the reduction over all ranks of in[r * count, (r + 1) * count). `in` holds
  /// size() * count elements. In place: out == in + rank() * count.
  TUTTI_API void reduce_scatter(ConstBuffer in, Buffer out, std::size_t count, DType dtype, const Operator& op,
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
  TUTTI_API void reduce(ConstBuffer in, Buffer out, std::size_t count, DType dtype, const Operator& op, int root,
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
  TUTTI_API void scan(ConstBuffer in, Buffer out, std::size_t count, DType dtype, const Operator& op,
                      const CallOptions& options = {});

  /// out[0, count) on rank r > 0 = the reduction over the ranks [0, r) of in[0, count). Op::avg divides by r. The `out`
  /// of rank 0 is not looked at. In place: out == in; rank 0 then keeps its input.
  TUTTI_API void exclusive_scan(ConstBuffer in, Buffer out, std::size_t count, DType dtype, const Operator& op,
                                const CallOptions& options = {});

  /// out[s * count, (s + 1) * count) on rank r = in[r * count, (r + 1) * count) of rank s, for every s. Both hold
  /// size() * count elements. In place: out == in; the call then copies the input first, to memory of the library.
  TUTTI_API void all_to_all(ConstBuffer in, Buffer out, std::size_t count, DType dtype,
                            const CallOptions& options = {});

  /// @name Rows of different lengths
  /// @{

  /// The calls of the same names, but each row has a length of its own. `rows` says where the rows of `in` or `out`
  /// begin, and how long they are: counts[r] elements at displacements[r], for every rank r. Buffers reach to the end
  /// of their last row. Rows of an output do not overlap. Errors: as of other calls; also Error{invalid_argument} for
  /// rows that are not as said here.
  ///
  /// A rank knows the rows of its own buffers alone. If two ranks say different lengths of one row, the message that
  /// carries the row shows it, and both calls end with Error{mismatch}; the rank that only sends may find out in its
  /// next call. On device memory, rows always pass through the host.

  /// Row r of `out` on every rank = in[0, counts[r]) of rank r. `rows` are those of `out`: the same lengths on every
  /// rank. In place: in == out + displacements[rank()].
  TUTTI_API void all_gather_v(ConstBuffer in, Buffer out, const UnequalRows& rows, DType dtype,
                              const CallOptions& options = {});
  /// out[0, counts[r]) on rank r = the reduction over all ranks of row r of `in`. `rows` are those of `in`: the same
  /// lengths on every rank. In place: out == in + displacements[rank()].
  TUTTI_API void reduce_scatter_v(ConstBuffer in, const UnequalRows& rows, Buffer out, DType dtype, Op op,
                                  const CallOptions& options = {});
  /// Row r of `out` on rank `root` = in[0, count) of rank r. `rows` are those of the root's `out`; other ranks' `out`
  /// and `rows` are not looked at. The root's count is counts[root]. In place, on the root: in == out +
  /// displacements[root].
  TUTTI_API void gather_v(ConstBuffer in, std::size_t count, Buffer out, const UnequalRows& rows, DType dtype, int root,
                          const CallOptions& options = {});
  /// out[0, count) on rank r = row r of `in` of rank `root`. `rows` are those of the root's `in`; other ranks' `in` and
  /// `rows` are not looked at. The root's count is counts[root]. In place, on the root: out == in +
  /// displacements[root].
  TUTTI_API void scatter_v(ConstBuffer in, const UnequalRows& rows, Buffer out, std::size_t count, DType dtype,
                           int root, const CallOptions& options = {});
  /// Row s of `out` on rank r = row r of `in` of rank s, for every s. Row r of both is as long on rank r. In place: out
  /// == in, with the same lengths and places of rows; the call then copies the input first.
  TUTTI_API void all_to_all_v(ConstBuffer in, const UnequalRows& in_rows, Buffer out, const UnequalRows& out_rows,
                              DType dtype, const CallOptions& options = {});
  /// @}

  /// Returns once every rank has entered it.
  TUTTI_API void barrier(const CallOptions& options = {});

  /// @name Send and receive
  /// What one rank sends another is received in the order in which it was sent: the first send from rank a to rank b on
  /// a communicator belongs to the first receive on b from a, the second to the second. The two must have the same
  /// count, type and CallOptions::tag, else both get Error{mismatch}. The same two ranks may send in both directions at
  /// once. Neither waits for the collectives of the communicator, nor they for it.
  ///
  /// A send blocks until `data` may be written again. It may return before the peer receives, or wait for it: do not
  /// count on either. So two ranks that both send first and receive then may wait for each other, until they time out;
  /// start one of the two calls instead (start_send()), or make both in a group (group_start()).
  ///
  /// Threads: one thread at a time for each direction between two ranks. Other threads may make the other calls of the
  /// communicator meanwhile. A rank sends to itself in a group only, else Error{unsupported}.
  /// @{

  /// Sends data[0, count) to rank `to`.
  TUTTI_API void send(ConstBuffer data, std::size_t count, DType dtype, int to, const CallOptions& options = {});
  /// data[0, count) = what rank `from` has sent.
  TUTTI_API void receive(Buffer data, std::size_t count, DType dtype, int from, const CallOptions& options = {});
  /// As send(). Returns at once. Started sends to one rank run in the order in which they were started.
  TUTTI_API Work start_send(ConstBuffer data, std::size_t count, DType dtype, int to, const CallOptions& options = {});
  /// As receive(). Returns at once. Started receives from one rank run in the order in which they were started.
  TUTTI_API Work start_receive(Buffer data, std::size_t count, DType dtype, int from, const CallOptions& options = {});

  /// For a rank that does not know who sends next: the rank whose next message to this rank has come, or has begun to,
  /// and which no receive here is waiting for. A receive from that rank takes the message. If several ranks have sent,
  /// each gets its turn from call to call. Which rank is first depends on time, so a result that depends on it is not
  /// the same in every run.
  ///
  /// Blocks for at most `limit`; 0: looks once. Then std::nullopt; it is no error. Advances started calls meanwhile.
  /// Throws the error of a communicator that has failed. A rank that has left counts as one that does not send, and so
  /// does this rank itself. One thread at a time, which also makes the receives. The first call makes a channel from
  /// every rank (split()).
  /// @pre No group of calls is open (group_start()), else Error{unsupported}.
  TUTTI_API std::optional<int> probe(std::chrono::milliseconds limit = {});
  /// @}

  /// @name Started calls
  /// @{

  /// The same calls; these return at once. The started calls of one communicator run in the order in which they were
  /// started. They advance inside test() and wait() of any Work, and inside any blocking call of this rank's job. Calls
  /// of device memory also advance by themselves.
  TUTTI_API Work start_all_reduce(ConstBuffer in, Buffer out, std::size_t count, DType dtype, const Operator& op,
                                  const CallOptions& options = {});
  TUTTI_API Work start_reduce_scatter(ConstBuffer in, Buffer out, std::size_t count, DType dtype, const Operator& op,
                                      const CallOptions& options = {});
  TUTTI_API Work start_all_gather(ConstBuffer in, Buffer out, std::size_t count, DType dtype,
                                  const CallOptions& options = {});
  TUTTI_API Work start_broadcast(Buffer buffer, std::size_t count, DType dtype, int root,
                                 const CallOptions& options = {});
  TUTTI_API Work start_broadcast(ConstBuffer in, Buffer out, std::size_t count, DType dtype, int root,
                                 const CallOptions& options = {});
  TUTTI_API Work start_reduce(ConstBuffer in, Buffer out, std::size_t count, DType dtype, const Operator& op, int root,
                              const CallOptions& options = {});
  TUTTI_API Work start_gather(ConstBuffer in, Buffer out, std::size_t count, DType dtype, int root,
                              const CallOptions& options = {});
  TUTTI_API Work start_scatter(ConstBuffer in, Buffer out, std::size_t count, DType dtype, int root,
                               const CallOptions& options = {});
  TUTTI_API Work start_scan(ConstBuffer in, Buffer out, std::size_t count, DType dtype, const Operator& op,
                            const CallOptions& options = {});
  TUTTI_API Work start_exclusive_scan(ConstBuffer in, Buffer out, std::size_t count, DType dtype, const Operator& op,
                                      const CallOptions& options = {});
  TUTTI_API Work start_all_to_all(ConstBuffer in, Buffer out, std::size_t count, DType dtype,
                                  const CallOptions& options = {});
  TUTTI_API Work start_all_gather_v(ConstBuffer in, Buffer out, const UnequalRows& rows, DType dtype,
                                    const CallOptions& options = {});
  TUTTI_API Work start_reduce_scatter_v(ConstBuffer in, const UnequalRows& rows, Buffer out, DType dtype, Op op,
                                        const CallOptions& options = {});
  TUTTI_API Work start_gather_v(ConstBuffer in, std::size_t count, Buffer out, const UnequalRows& rows, DType dtype,
                                int root, const CallOptions& options = {});
  TUTTI_API Work start_scatter_v(ConstBuffer in, const UnequalRows& rows, Buffer out, std::size_t count, DType dtype,
                                 int root, const CallOptions& options = {});
  TUTTI_API Work start_all_to_all_v(ConstBuffer in, const UnequalRows& in_rows, Buffer out, const UnequalRows& out_rows,
                                    DType dtype, const CallOptions& options = {});
  TUTTI_API Work start_barrier(const CallOptions& options = {});
  /// @}

  /// @name Typed calls, in place
  /// @{

  /// values[0, size) on every rank.
  template <class T>
  void all_reduce(std::span<T> values, const Operator& op, const CallOptions& options = {}) {
    all_reduce(values.data(), values.data(), values.size(), dtype_of<T>, op, options);
  }
  template <class T>
  void broadcast(std::span<T> values, int root, const CallOptions& options = {}) {
    broadcast(values.data(), values.size(), dtype_of<T>, root, options);
  }
  /// @}

  /// Collective, and blocks. Ranks that pass the same non-negative color form a new communicator, ordered by (key, rank
  /// here). A rank that passes a negative color takes part, and gets a communicator of itself alone. The new
  /// communicator begins with the timeout of this one (set_timeout()). Either all ranks return, or all throw: what this
  /// one has failed with, or Error{system} if a rank has no room for it; then this one stays usable.
  ///
  /// A rank has one channel for each communicator and peer that a call has talked to, and two more for each peer that
  /// it sends to and receives from. Over TCP a channel is a connection, and takes a descriptor. Over shared memory it
  /// can have 4096 channels at a time, and at least 32,000 in the life of the job. A call that needs more fails with
  /// Error{system}.
  TUTTI_API Communicator split(int color, int key = 0);

  /// A communicator of the ranks ranks[0, n) of this one, in that order. Those ranks call it, and no others. All pass
  /// the same list and the same `name`, which may have any bytes.
  ///
  /// Does not block: no message is sent, and no rank is waited for. A rank may make several of the same list and name:
  /// the first of one rank is the first of each other rank, and so on. Groups that differ in list or name may be made
  /// in any order. So two parts of a program that make groups of the same ranks on their own should give them different
  /// names. If a rank of the list does not make the group, the calls there that need the rank time out, and the error
  /// names it.
  ///
  /// The new communicator begins with the timeout of this one (set_timeout()). It can be made although this one has
  /// failed: after the loss of a rank, of the ranks that are left.
  ///
  /// Threads: as a call of this communicator. Throws Error{invalid_argument} for an empty list, for a number that no
  /// rank has or that is there twice, and for a list without this rank; Error{unsupported} in a forked child. Nothing
  /// is made then. Channels: as of split().
  TUTTI_API Communicator subgroup(std::span<const int> ranks, const std::string& name = "");

  /// Collective among the ranks that are left: makes a communicator of those ranks of this one that are neither lost
  /// nor have left the job, in their old order. To go on after Error{peer_lost}: this communicator has failed then, and
  /// the new one has not. All agree on who is left; a rank that is lost later fails the new communicator, which can be
  /// shrunk in turn. job_ranks() of the new one says who is who.
  ///
  /// Blocks until all that are left have called it, or have been lost or have left; at most a moment longer than a call
  /// of this communicator. May be called if no rank is lost, too. Symmetric memory and registrations serve the new one
  /// as before. `tutti run` ends all ranks when one has failed, unless it is started with --keep-going.
  ///
  /// Threads: as a call of this communicator. Throws Error{partitioned} on a side of a broken network that is no
  /// majority, nor half of the ranks and the lowest of them. Error{expelled} if this rank was given up itself.
  /// Error{timeout} if ranks that are left did not call it in time. It names them. If they call it later, this rank
  /// does not count. Error{unsupported} in a forked child. Nothing is made then. Channels: as of split().
  TUTTI_API Communicator shrink();

  /// Collective: makes an operator of the caller's own function, for calls of this communicator on host memory.
  ///
  /// The function is called along the tree of the canonical order, so it need be neither commutative nor associative:
  /// the same function gives the same bits with every algorithm. (CallOptions::order allows others.) The first inputs
  /// of the tree reach it as the ranks gave them; of Order::canonical nothing else happens to elements, but that 16-bit
  /// and 8-bit floats are converted to float before it, and rounded after the last combination.
  ///
  /// `name` has 1 to 63 bytes. If two ranks pass different names, every rank throws Error{mismatch}, and the
  /// communicator stays usable. Each rank passes its own function; functions must do the same. It lives as long as the
  /// communicator. A communicator has at most 200. A call with device memory, or on another communicator, throws
  /// Error{unsupported} or Error{invalid_argument}, and is not made. Blocks.
  TUTTI_API Operator make_operator(const std::string& name, CombineFunction function);

  /// Collective, and blocks. Every rank asks for the same number of bytes. The peers of this host read and write
  /// buffers in the result directly. Its start is aligned to 4096. Either all ranks return, or all throw.
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

  /// Shares data[0, bytes), memory of the caller's own, with the ranks of this host, in place: the address and the
  /// contents stay. Then calls on buffers in it are as fast as on memory of allocate(). Not collective: a rank adopts
  /// what it likes, when it likes. The result holds for all communicators of the job. When it goes, the memory is
  /// private again, with the contents that it has then. In a job that uses RDMA, adopt() does what register_memory()
  /// does instead, and the pages stay private.
  ///
  /// The memory must be private to the process, as that of malloc(), new and anonymous mmap() is: not a mapped file, no
  /// huge pages of hugetlbfs, not pinned for a GPU, nor registered with any device. What the caller has told the system
  /// of it is lost: locks, advice, huge pages, the memory node. No thread may use it during adopt(), nor while the
  /// result goes. Only whole pages of 4096 bytes are shared, so nothing beside the buffer is; the bytes before the
  /// first and after the last whole page are copied for each message that has some of them. A buffer that starts at a
  /// multiple of 4096 and ends at one is quickest. One without a whole page stays as it is.
  ///
  /// fork(): a child shares the adopted pages with its parent, as it does the memory of allocate(). What either writes
  /// there, both see. So a child must not write there, and not read there once its parent's adoption has ended.
  ///
  /// Blocks while the memory is copied, into shared pages, and back when the result goes; during adopt() it is there
  /// twice. It counts as memory of allocate(): 64 GiB in all. If a call fails while a peer is stopped in the middle of
  /// it (see "Buffers after a call"), all adopted memory is private again at once. If no other rank is reached by
  /// shared memory, the pages stay as they are. If the system refuses to map private pages (a limit on the number of
  /// mappings), they stay shared with the peers. Thread-safe. Throws Error{invalid_argument} for memory that is not as
  /// said here, or is adopted already; Error{system} if there is no room. Nothing has changed then, and the
  /// communicator stays usable.
  TUTTI_API Registration adopt(void* data, std::size_t bytes);

  /// Fails this communicator on every rank with Error{aborted}, which carries `reason`. Blocks until the others are
  /// being told, for 200 ms at most: so the process may end right afterwards. Thread-safe: also during a call of
  /// another thread.
  TUTTI_API void abort(const std::string& reason);

  /// How long later calls here that name no timeout wait for a peer or a GPU that does not come to them; 0: as long as
  /// Settings::timeout says. Not collective: ranks may differ. Also for the calls that have been started. Does not
  /// block. Throws Error{invalid_argument} for a negative one.
  TUTTI_API void set_timeout(std::chrono::milliseconds timeout);

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
