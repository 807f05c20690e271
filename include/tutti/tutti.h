/// @file
/// The library for C, and for programs that are written for NCCL. It is C99, and C++ takes it too. Programs in C++ are
/// better served by tutti/communicator.h, which throws; here nothing is thrown.
///
///     tutti_comm_t world;
///     if (tutti_comm_init_env(&world) != TUTTI_SUCCESS) return fail(tutti_last_error(NULL));
///     tutti_all_reduce(gradient, gradient, count, TUTTI_FLOAT32, TUTTI_SUM, world, NULL);
///     tutti_comm_destroy(world);
///
/// docs/guide/c_api.md has the calls of NCCL beside these, and what differs.
///
/// **Results.** Every function but those that return a text or a number returns a tutti_result_t. If it is not
/// TUTTI_SUCCESS, tutti_last_error() says who, what, where and what to do, and tutti_last_error_code() says it for
/// programs. What a function writes for its caller is not written then, except handles, which become null.
///
/// **Handles.** A handle is made by one call and freed by another. Using a handle that was freed is undefined, as is
/// using one that no call has made. A null handle, and a null pointer where a pointer is needed, is refused with
/// TUTTI_INVALID_ARGUMENT. Freeing null does nothing.
///
/// **The rest** is, for a function that takes a communicator, as tutti/communicator.h says it for the class
/// Communicator, in these paragraphs: Threads, Shapes,
/// Blocking, Buffers after a call, Errors before the call, Errors during the call, Waiting, fork().
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tutti/export.h"
#include "tutti/tutti_joining.h"
#include "tutti/tutti_types.h"
#include "tutti/version.h"

#ifdef __cplusplus
extern "C" {
#endif
// NOLINTBEGIN(modernize-use-using): C has no `using`

/// @name What has gone wrong
/// @{

/// The name of a result: "invalid argument". "?" for what is no result. It lives for ever.
TUTTI_API const char* tutti_result_text(tutti_result_t result);

/// Why `comm` has failed, if it has; else the last error of this thread. With null: the last error of this thread.
/// Empty if there was none. Never null. The text may be cut at 2047 bytes. It stays until the next call of this thread.
TUTTI_API const char* tutti_last_error(tutti_comm_t comm);

/// The code of the error that tutti_last_error(comm) tells.
TUTTI_API tutti_error_code_t tutti_last_error_code(tutti_comm_t comm);

/// The rank that this error is about, or that told this rank: its number in the communicator of the call. -1: none.
TUTTI_API int tutti_last_error_peer(tutti_comm_t comm);

/// *version = TUTTI_VERSION_NUMBER of the library that runs, which may be newer than the header. Does not
/// block. Thread-safe.
TUTTI_API tutti_result_t tutti_get_version(int* version);
/// @}

/// @name Joining
/// @{

/// *id = a new meeting place for one communicator. From then on this process listens there for the other ranks.
///
/// **Rank 0 must join in the process that made the id**, or in a child that was forked from it after that: the place
/// belongs to the process. Elsewhere rank 0 gets TUTTI_INVALID_USAGE. An id serves one communicator: a rank that joins
/// with it again in one process gets TUTTI_INVALID_USAGE. Any number of ids may exist at a time. Each takes a
/// descriptor until rank 0 has joined.
///
/// The place is an address of the interface that reaches other hosts, or of TUTTI_INTERFACE, with a free port, or one
/// of TUTTI_PORTS. On a host without any network it is a local socket, and all ranks must be on this host.
///
/// Does not block. Thread-safe. Errors: TUTTI_INVALID_ARGUMENT, TUTTI_SYSTEM_ERROR.
TUTTI_API tutti_result_t tutti_get_unique_id(tutti_unique_id* id);

/// Joins as `rank` of `nranks` where the id says; *comm is the communicator. All ranks pass the same id, and 0 <= rank
/// < nranks. The variables of launchers, TUTTI_MASTER and TUTTI_SECRET are not looked at. Several ranks may be in one
/// process: each joins on a thread of its own, or one thread joins them in a group.
///
/// Blocks until all ranks have joined, at most a moment longer than the join timeout. If it fails, *comm is null. Every
/// rank that has come is told what rank 0 finds wrong.
///
/// **In a group** (tutti_group_start()) it does not block. What is wrong with the arguments it says at once; the group
/// then goes on without this join. The id and the config are copied. `comm` must stay valid until the group has ended;
/// *comm is null until then. The outermost tutti_group_end() makes all joins of the group at once, each on a thread of
/// its own, and the calls of the group after that. If one join fails, the group's error is the one that came first, no
/// call of the group is made, and every *comm of the group stays null: what has joined leaves again. The id is used up
/// then.
TUTTI_API tutti_result_t tutti_comm_init_rank(tutti_comm_t* comm, int nranks, tutti_unique_id id, int rank);

/// As tutti_comm_init_rank(). `config` may be null: nothing is set.
TUTTI_API tutti_result_t tutti_comm_init_rank_config(tutti_comm_t* comm, int nranks, tutti_unique_id id, int rank,
                                                     const tutti_config_t* config);

/// Joins the job that the environment describes: started by `tutti run`, torchrun, mpirun or srun. Without any of them
/// it is a job of one rank. Otherwise as tutti_comm_init_rank(), in a group too.
TUTTI_API tutti_result_t tutti_comm_init_env(tutti_comm_t* comm);

/// As tutti_comm_init_env(). `config` may be null: nothing is set.
TUTTI_API tutti_result_t tutti_comm_init_env_config(tutti_comm_t* comm, const tutti_config_t* config);

/// Joins through the caller's store. With `add`, the ranks may join through it any number of times, each rank as often
/// as every other one; a join that fails counts. Without it each join needs keys of its own: put another prefix before
/// them for each. `config` may be null. Otherwise as tutti_comm_init_rank(), in a group too.
TUTTI_API tutti_result_t tutti_comm_init_store(tutti_comm_t* comm, int nranks, int rank, tutti_store_t store,
                                               const tutti_config_t* config);
/// @}

/// @name Communicators
/// @{

/// Collective. Ranks that pass the same color, which is not negative, form a new communicator *part, ordered by (key,
/// rank here). A rank that passes a negative color takes part, and *part is null for it. Blocks, but not in a group:
/// there it is made with the joins, as tutti_comm_init_rank() says; those of one communicator one after the other.
TUTTI_API tutti_result_t tutti_comm_split(tutti_comm_t comm, int color, int key, tutti_comm_t* part);

/// *part = a communicator of the ranks ranks[0, nranks) of `comm`, in that order. Those ranks call it, and no others.
/// All pass the same list and the same `name`, which may be null: then it is empty. Does not
/// block: no message is sent, and no rank is waited for. In a group too it is made at once, and may be used there.
///
/// A rank may make several of the same list and name: the first of one rank is the first of each other rank, and so on.
/// Groups that differ in list or name may be made in any order. If a rank of the list does not make the group, the
/// calls there that need the rank time out, and the error names it. *part begins with the algorithm, the order and the
/// timeout of `comm`, as a communicator that is split off. It can be made although `comm` has failed: after the loss of
/// a rank, of the ranks that are left.
///
/// Threads: as a call of `comm`. Errors: TUTTI_INVALID_ARGUMENT for an empty list, for a number that no rank has or
/// that is there twice, and for a list without this rank. *part is null then, and nothing is made.
TUTTI_API tutti_result_t tutti_comm_create_group(tutti_comm_t comm, const int* ranks, int nranks, const char* name,
                                                 tutti_comm_t* part);

/// Collective among the ranks that are left: *part = a communicator of those ranks of `comm` that are neither lost nor
/// have left the job, in their old order, to go on after TUTTI_ERROR_PEER_LOST. All agree on who is left. Blocks until
/// all of these have called it, or have been lost or have left; at most as long as a call of `comm`. In a group too it
/// is made at once. *part begins with the algorithm, the order and the timeout of `comm`. See Communicator::shrink().
///
/// Threads: as a call of `comm`. Errors: TUTTI_REMOTE_ERROR: TUTTI_ERROR_PARTITIONED, if the ranks that can be reached
/// are no majority; TUTTI_ERROR_EXPELLED, if this rank was given up; TUTTI_ERROR_TIMEOUT, if a rank that is left did
/// not call it. *part is null then, and nothing is made.
TUTTI_API tutti_result_t tutti_comm_shrink(tutti_comm_t comm, tutti_comm_t* part);

/// Leaves the communicator once its started calls are over. Afterwards it can only be destroyed; every other call on it
/// gets TUTTI_INVALID_USAGE.
///
/// Blocks for these calls, and for an answer from the process of the lowest rank that is there. Not collective: it
/// waits for no rank. Gives the communicator's failure, if it has failed, and TUTTI_ERROR_MISMATCH if a rank that left
/// before had made other calls.
TUTTI_API tutti_result_t tutti_comm_finalize(tutti_comm_t comm);

/// Frees the communicator. If it was not finalized, this rank leaves it now, and a mismatch is only logged. Blocks
/// until its calls on streams and its started calls of device memory are over. It always succeeds. No other thread may
/// use the communicator any more; its works, memories and registrations may still be used and freed.
TUTTI_API tutti_result_t tutti_comm_destroy(tutti_comm_t comm);

/// Fails this communicator on every rank with TUTTI_ERROR_ABORTED. `reason` is told to all; it may be null. Blocks
/// until the others are being told, for 200 ms at most. Does not free the communicator. Thread-safe: also during a call
/// of another thread, which then ends.
TUTTI_API tutti_result_t tutti_comm_abort(tutti_comm_t comm, const char* reason);

/// *failure = what the next call would give, as far as is known: TUTTI_SUCCESS if the communicator is well. Does not
/// block. Thread-safe: also during a call of another thread. tutti_last_error(comm) says more.
TUTTI_API tutti_result_t tutti_comm_get_async_error(tutti_comm_t comm, tutti_result_t* failure);

/// How long later calls here wait for a peer or a GPU that does not come to them; 0: as long as tutti_config_t says.
/// Not collective: ranks may differ. Also for the calls that have been started. Does not block.
TUTTI_API tutti_result_t tutti_comm_set_timeout(tutti_comm_t comm, int64_t timeout_ms);

/// The algorithm of later collectives here, by a name that `tutti plan --list` prints: "ring". Null: the communicator's
/// table chooses for each. The same on every rank, else the next call gives TUTTI_ERROR_MISMATCH. Does not block.
/// TUTTI_ERROR_INVALID_ARGUMENT for a name that does not exist. A call whose collective has no algorithm of that name,
/// or whose order or rows the algorithm cannot keep (as "bruck" those of different lengths), is refused with
/// TUTTI_ERROR_INVALID_ARGUMENT, and is not made: a barrier too, if it has none of that name. Sends and receives have
/// one algorithm. A communicator that is split off begins with the algorithm, the order and the timeout of `comm`.
TUTTI_API tutti_result_t tutti_comm_set_algorithm(tutti_comm_t comm, const char* algorithm);

/// The order in which later calls here combine, one of enum tutti_order, in place of tutti_config_t::order. The same on
/// every rank, else the next call gives TUTTI_ERROR_MISMATCH. Does not block. TUTTI_ERROR_INVALID_ARGUMENT for another
/// number.
TUTTI_API tutti_result_t tutti_comm_set_order(tutti_comm_t comm, int order);

/// *algorithm = the name of the algorithm that the communicator's table chooses for such a call: of the collective by
/// its name, "all_reduce", with `count` elements as the call counts them, and with rows of one length. The name lives
/// for ever. Not collective. Does not block. TUTTI_ERROR_INVALID_ARGUMENT for what is no collective or no type.
TUTTI_API tutti_result_t tutti_comm_choose(tutti_comm_t comm, const char* collective, size_t count, tutti_dtype_t dtype,
                                           const char** algorithm);

/// *count = how many ranks there are. Does not block. Thread-safe.
TUTTI_API tutti_result_t tutti_comm_count(tutti_comm_t comm, int* count);
/// *rank = the number of this rank here, [0, count). Does not block. Thread-safe.
TUTTI_API tutti_result_t tutti_comm_rank(tutti_comm_t comm, int* rank);

/// Registers data[0, bytes) with the RDMA device, for all communicators of the job, until *registration is ended: large
/// messages there are then sent and received without a copy. Not collective. The memory must stay until
/// tutti_comm_deregister(). If this rank uses no RDMA, nothing happens. Blocks for about a second for each GiB. If the
/// device or the memlock limit refuses, it gives TUTTI_SYSTEM_ERROR, and the communicator stays usable.
TUTTI_API tutti_result_t tutti_comm_register(tutti_comm_t comm, void* data, size_t bytes,
                                             tutti_registration_t* registration);
/// Shares data[0, bytes), memory of the caller's own, with the ranks of this host, in place, until *registration is
/// ended by tutti_comm_deregister(): the address and the contents stay, and calls on buffers in it are as fast as on
/// memory of tutti_memory_allocate(). In a job that uses RDMA it does what tutti_comm_register() does. Not collective.
/// Thread-safe. Blocks while the memory is copied, twice. TUTTI_ERROR_INVALID_ARGUMENT for memory that is not private
/// to the process (as that of malloc() is), is pinned, or is adopted already; TUTTI_SYSTEM_ERROR if there is no room.
/// What it means for whole pages, threads and fork(): Communicator::adopt() in communicator.h.
TUTTI_API tutti_result_t tutti_comm_adopt(tutti_comm_t comm, void* data, size_t bytes,
                                          tutti_registration_t* registration);
/// Ends a registration or an adoption. `comm` may be null, as it may be gone already. Blocks while adopted memory is
/// copied. No call may still use the memory.
TUTTI_API tutti_result_t tutti_comm_deregister(tutti_comm_t comm, tutti_registration_t registration);

/// *memory = new memory of `bytes` bytes. Collective, and blocks: every rank asks for the same number. The peers of
/// this host read and write buffers in the memory directly. If there is no space, every rank gets TUTTI_SYSTEM_ERROR,
/// and the communicator stays usable.
TUTTI_API tutti_result_t tutti_memory_allocate(tutti_comm_t comm, size_t bytes, tutti_memory_t* memory);
/// The first byte, aligned to 4096. Null for null.
TUTTI_API void* tutti_memory_data(tutti_memory_t memory);
/// As many bytes as were asked for. 0 for null.
TUTTI_API size_t tutti_memory_bytes(tutti_memory_t memory);
/// Frees the memory. No call may still use it. Does not block.
TUTTI_API tutti_result_t tutti_memory_free(tutti_memory_t memory);
/// @}

/// @name Collectives
/// `count` counts elements, and count of ranks * count is below 2^48. Buffers are host, pinned, device or managed
/// memory, aligned to the element type. They do not overlap, or are in place as each call says. They may be null if
/// count is 0. All arguments but the buffers and the stream are the same on every rank, else TUTTI_ERROR_MISMATCH.
///
/// `stream` is a cudaStream_t, or null. With null the call blocks until it is done on this rank. With a stream it
/// returns at once and runs in the stream's order, and the buffers must stay untouched until the stream has passed it.
/// If it fails there, the next call on the communicator says so, and tutti_comm_get_async_error().
/// tutti::CallOptions in tutti/communicator.h says the rest.
///
/// TUTTI_ERROR_INVALID_ARGUMENT, TUTTI_ERROR_UNSUPPORTED, and TUTTI_ERROR_SYSTEM because CUDA refuses something, come
/// before the call is made: the communicator stays usable. Every other error is final: output buffers are unspecified,
/// and every later call gives the same error.
/// @{

/// *op = a sum before which this rank multiplies its elements by *scalar, which is of type `dtype`: that of the
/// elements; or TUTTI_FLOAT32, if they are 16-bit or 8-bit floats. tutti::premul_sum() in tutti/operator.h says how the
/// product is rounded. All ranks must use such an operator in a call; their scalars may differ. For calls on `comm`
/// only. Not collective. Does not block. `residence` must be TUTTI_SCALAR_HOST_IMMEDIATE, else the error is
/// TUTTI_ERROR_UNSUPPORTED.
TUTTI_API tutti_result_t tutti_op_create_premul_sum(tutti_op_t* op, const void* scalar, tutti_dtype_t dtype,
                                                    tutti_scalar_residence_t residence, tutti_comm_t comm);
/// out[i] = left[i] combined with right[i], for i in [0, count). tutti::CombineFunction in tutti/operator.h says what
/// the elements are, which memory may be the same, and which threads call it. It must not call the library.
typedef void (*tutti_combine_function)(void* user, const void* left, const void* right, void* out, size_t count);

/// *op = an operator of the caller's own function, for calls on `comm` with host memory. `user` is passed to the
/// function. Collective: every rank passes the same name of 1 to 63 bytes, else every rank gets TUTTI_ERROR_MISMATCH,
/// and the communicator stays usable. A communicator has at most 200 in its life. Communicator::make_operator() in
/// tutti/communicator.h says the rest. Blocks.
TUTTI_API tutti_result_t tutti_op_create_custom(tutti_op_t* op, const char* name, tutti_combine_function combine,
                                                void* user, tutti_comm_t comm);

/// Frees an operator that was made for `comm`. Calls that were started with it go on. Operators that are not destroyed
/// go with the communicator.
TUTTI_API tutti_result_t tutti_op_destroy(tutti_op_t op, tutti_comm_t comm);

/// recvbuff[0, count) on every rank = the reduction over all ranks of sendbuff[0, count). In place: recvbuff ==
/// sendbuff.
TUTTI_API tutti_result_t tutti_all_reduce(const void* sendbuff, void* recvbuff, size_t count, tutti_dtype_t dtype,
                                          tutti_op_t op, tutti_comm_t comm, void* stream);

/// recvbuff[0, count) on rank `root` = the reduction over all ranks of sendbuff[0, count). Other ranks' recvbuff is not
/// looked at. In place, on the root: recvbuff == sendbuff.
TUTTI_API tutti_result_t tutti_reduce(const void* sendbuff, void* recvbuff, size_t count, tutti_dtype_t dtype,
                                      tutti_op_t op, int root, tutti_comm_t comm, void* stream);

/// recvbuff[0, count) on every rank = sendbuff[0, count) of rank `root`. Other ranks' sendbuff is not looked at. In
/// place: recvbuff == sendbuff.
TUTTI_API tutti_result_t tutti_broadcast(const void* sendbuff, void* recvbuff, size_t count, tutti_dtype_t dtype,
                                         int root, tutti_comm_t comm, void* stream);

/// recvbuff[0, recvcount) on rank r = the reduction over all ranks of sendbuff[r * recvcount, (r + 1) * recvcount).
/// sendbuff holds count of ranks * recvcount elements. In place: recvbuff == sendbuff + rank * recvcount.
TUTTI_API tutti_result_t tutti_reduce_scatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                                              tutti_dtype_t dtype, tutti_op_t op, tutti_comm_t comm, void* stream);

/// recvbuff[r * sendcount, (r + 1) * sendcount) on every rank = sendbuff[0, sendcount) of rank r. recvbuff holds count
/// of ranks * sendcount elements. In place: sendbuff == recvbuff + rank * sendcount.
TUTTI_API tutti_result_t tutti_all_gather(const void* sendbuff, void* recvbuff, size_t sendcount, tutti_dtype_t dtype,
                                          tutti_comm_t comm, void* stream);

/// recvbuff[r * count, (r + 1) * count) on rank `root` = sendbuff[0, count) of rank r. Other ranks' recvbuff is not
/// looked at. In place, on the root: sendbuff == recvbuff + root * count.
TUTTI_API tutti_result_t tutti_gather(const void* sendbuff, void* recvbuff, size_t count, tutti_dtype_t dtype, int root,
                                      tutti_comm_t comm, void* stream);

/// recvbuff[0, count) on rank r = sendbuff[r * count, (r + 1) * count) of rank `root`. Other ranks' sendbuff is not
/// looked at. In place, on the root: recvbuff == sendbuff + root * count.
TUTTI_API tutti_result_t tutti_scatter(const void* sendbuff, void* recvbuff, size_t count, tutti_dtype_t dtype,
                                       int root, tutti_comm_t comm, void* stream);

/// recvbuff[0, count) on rank r = the reduction over the ranks [0, r + 1) of sendbuff[0, count). TUTTI_AVG divides by
/// r + 1. In place: recvbuff == sendbuff.
TUTTI_API tutti_result_t tutti_scan(const void* sendbuff, void* recvbuff, size_t count, tutti_dtype_t dtype,
                                    tutti_op_t op, tutti_comm_t comm, void* stream);

/// recvbuff[0, count) on rank r > 0 = the reduction over the ranks [0, r) of sendbuff[0, count). TUTTI_AVG divides by
/// r. The recvbuff of rank 0 is not looked at. In place: recvbuff == sendbuff; rank 0 then keeps its input.
TUTTI_API tutti_result_t tutti_exclusive_scan(const void* sendbuff, void* recvbuff, size_t count, tutti_dtype_t dtype,
                                              tutti_op_t op, tutti_comm_t comm, void* stream);

/// recvbuff[s * count, (s + 1) * count) on rank r = sendbuff[r * count, (r + 1) * count) of rank s, for every s. Both
/// hold count of ranks * count elements. In place: recvbuff == sendbuff; the call then copies the input first.
TUTTI_API tutti_result_t tutti_all_to_all(const void* sendbuff, void* recvbuff, size_t count, tutti_dtype_t dtype,
                                          tutti_comm_t comm, void* stream);

/// Returns once every rank has entered it.
TUTTI_API tutti_result_t tutti_barrier(tutti_comm_t comm, void* stream);
/// @}

/// @name Rows of different lengths
/// As the calls of the same names, but each row of a buffer has a length of its own: counts[r] elements at displs[r]
/// elements from the beginning of the buffer, for every rank r. `displs` may be null: each row then begins where the
/// one before it ends. Rows of a recvbuff do not overlap. The arrays are read before the call returns, a started one
/// too. If two ranks say different lengths of one row, both calls fail with TUTTI_ERROR_MISMATCH.
/// @{

/// Row r of recvbuff on every rank = sendbuff[0, recvcounts[r]) of rank r; the same counts on every rank. In place:
/// sendbuff == recvbuff + displs[rank].
TUTTI_API tutti_result_t tutti_all_gather_v(const void* sendbuff, void* recvbuff, const size_t* recvcounts,
                                            const size_t* displs, tutti_dtype_t dtype, tutti_comm_t comm, void* stream);

/// recvbuff[0, sendcounts[r]) on rank r = the reduction over all ranks of row r of sendbuff; the same counts on every
/// rank. In place: recvbuff == sendbuff + displs[rank].
TUTTI_API tutti_result_t tutti_reduce_scatter_v(const void* sendbuff, const size_t* sendcounts, const size_t* displs,
                                                void* recvbuff, tutti_dtype_t dtype, tutti_op_t op, tutti_comm_t comm,
                                                void* stream);

/// Row r of recvbuff on rank `root` = sendbuff[0, sendcount) of rank r. Other ranks' recvbuff, counts and displacements
/// are not looked at. In place, on the root: sendbuff == recvbuff + displs[root].
TUTTI_API tutti_result_t tutti_gather_v(const void* sendbuff, size_t sendcount, void* recvbuff,
                                        const size_t* recvcounts, const size_t* displs, tutti_dtype_t dtype, int root,
                                        tutti_comm_t comm, void* stream);

/// recvbuff[0, recvcount) on rank r = row r of sendbuff of rank `root`. Other ranks' sendbuff, counts and displacements
/// are not looked at. In place, on the root: recvbuff == sendbuff + displs[root].
TUTTI_API tutti_result_t tutti_scatter_v(const void* sendbuff, const size_t* sendcounts, const size_t* displs,
                                         void* recvbuff, size_t recvcount, tutti_dtype_t dtype, int root,
                                         tutti_comm_t comm, void* stream);

/// Row s of recvbuff on rank r = row r of sendbuff of rank s, for every s. In place: recvbuff == sendbuff, with equal
/// counts and displacements; the call then copies the input first.
TUTTI_API tutti_result_t tutti_all_to_all_v(const void* sendbuff, const size_t* sendcounts, const size_t* sdispls,
                                            void* recvbuff, const size_t* recvcounts, const size_t* rdispls,
                                            tutti_dtype_t dtype, tutti_comm_t comm, void* stream);
/// @}

/// @name Started calls
/// @{

/// The same calls; these return at once, and *work is the call. The started calls of one communicator run in the order
/// in which they were started. They advance inside tutti_work_test() and tutti_work_wait() of any work, and inside any
/// blocking call of this rank's job; with TUTTI_PROGRESS_THREAD, and if they are of device memory, also by themselves.
/// The buffers must stay untouched until the work is over and, if there is a stream, until the stream has passed the
/// call. If the call cannot be started, *work is null.
TUTTI_API tutti_result_t tutti_start_all_reduce(const void* sendbuff, void* recvbuff, size_t count, tutti_dtype_t dtype,
                                                tutti_op_t op, tutti_comm_t comm, void* stream, tutti_work_t* work);
TUTTI_API tutti_result_t tutti_start_reduce(const void* sendbuff, void* recvbuff, size_t count, tutti_dtype_t dtype,
                                            tutti_op_t op, int root, tutti_comm_t comm, void* stream,
                                            tutti_work_t* work);
TUTTI_API tutti_result_t tutti_start_broadcast(const void* sendbuff, void* recvbuff, size_t count, tutti_dtype_t dtype,
                                               int root, tutti_comm_t comm, void* stream, tutti_work_t* work);
TUTTI_API tutti_result_t tutti_start_reduce_scatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                                                    tutti_dtype_t dtype, tutti_op_t op, tutti_comm_t comm, void* stream,
                                                    tutti_work_t* work);
TUTTI_API tutti_result_t tutti_start_all_gather(const void* sendbuff, void* recvbuff, size_t sendcount,
                                                tutti_dtype_t dtype, tutti_comm_t comm, void* stream,
                                                tutti_work_t* work);
TUTTI_API tutti_result_t tutti_start_gather(const void* sendbuff, void* recvbuff, size_t count, tutti_dtype_t dtype,
                                            int root, tutti_comm_t comm, void* stream, tutti_work_t* work);
TUTTI_API tutti_result_t tutti_start_scatter(const void* sendbuff, void* recvbuff, size_t count, tutti_dtype_t dtype,
                                             int root, tutti_comm_t comm, void* stream, tutti_work_t* work);
TUTTI_API tutti_result_t tutti_start_scan(const void* sendbuff, void* recvbuff, size_t count, tutti_dtype_t dtype,
                                          tutti_op_t op, tutti_comm_t comm, void* stream, tutti_work_t* work);
TUTTI_API tutti_result_t tutti_start_exclusive_scan(const void* sendbuff, void* recvbuff, size_t count,
                                                    tutti_dtype_t dtype, tutti_op_t op, tutti_comm_t comm, void* stream,
                                                    tutti_work_t* work);
TUTTI_API tutti_result_t tutti_start_all_to_all(const void* sendbuff, void* recvbuff, size_t count, tutti_dtype_t dtype,
                                                tutti_comm_t comm, void* stream, tutti_work_t* work);
TUTTI_API tutti_result_t tutti_start_all_gather_v(const void* sendbuff, void* recvbuff, const size_t* recvcounts,
                                                  const size_t* displs, tutti_dtype_t dtype, tutti_comm_t comm,
                                                  void* stream, tutti_work_t* work);
TUTTI_API tutti_result_t tutti_start_reduce_scatter_v(const void* sendbuff, const size_t* sendcounts,
                                                      const size_t* displs, void* recvbuff, tutti_dtype_t dtype,
                                                      tutti_op_t op, tutti_comm_t comm, void* stream,
                                                      tutti_work_t* work);
TUTTI_API tutti_result_t tutti_start_gather_v(const void* sendbuff, size_t sendcount, void* recvbuff,
                                              const size_t* recvcounts, const size_t* displs, tutti_dtype_t dtype,
                                              int root, tutti_comm_t comm, void* stream, tutti_work_t* work);
TUTTI_API tutti_result_t tutti_start_scatter_v(const void* sendbuff, const size_t* sendcounts, const size_t* displs,
                                               void* recvbuff, size_t recvcount, tutti_dtype_t dtype, int root,
                                               tutti_comm_t comm, void* stream, tutti_work_t* work);
TUTTI_API tutti_result_t tutti_start_all_to_all_v(const void* sendbuff, const size_t* sendcounts, const size_t* sdispls,
                                                  void* recvbuff, const size_t* recvcounts, const size_t* rdispls,
                                                  tutti_dtype_t dtype, tutti_comm_t comm, void* stream,
                                                  tutti_work_t* work);
TUTTI_API tutti_result_t tutti_start_barrier(tutti_comm_t comm, void* stream, tutti_work_t* work);
/// @}

/// @name Send and receive, and groups of calls
/// @{

/// Sends sendbuff[0, count) to rank `peer`. Blocks until sendbuff may be written again, or has a stream. The first send
/// from one rank to another belongs to the first receive there from that rank, and so on; both must have the same count
/// and type, else both get TUTTI_ERROR_MISMATCH. Neither waits for the collectives of the communicator.
/// Communicator::send() in tutti/communicator.h says the rest.
TUTTI_API tutti_result_t tutti_send(const void* sendbuff, size_t count, tutti_dtype_t dtype, int peer,
                                    tutti_comm_t comm, void* stream);
/// recvbuff[0, count) = what rank `peer` has sent.
TUTTI_API tutti_result_t tutti_recv(void* recvbuff, size_t count, tutti_dtype_t dtype, int peer, tutti_comm_t comm,
                                    void* stream);
/// As tutti_send(); it returns at once, and *work is the call. `tag` is from 0 to 65535, and must be the same of both
/// ranks; tutti_send() and tutti_recv() have 0. It is checked, and selects nothing.
TUTTI_API tutti_result_t tutti_start_send(const void* sendbuff, size_t count, tutti_dtype_t dtype, int peer, int tag,
                                          tutti_comm_t comm, void* stream, tutti_work_t* work);
/// As tutti_recv(); otherwise as tutti_start_send().
TUTTI_API tutti_result_t tutti_start_recv(void* recvbuff, size_t count, tutti_dtype_t dtype, int peer, int tag,
                                          tutti_comm_t comm, void* stream, tutti_work_t* work);
/// For a rank that does not know who sends next: *peer = the rank whose next message to this rank has come, and which
/// no receive here is waiting for; -1 if there is none. Blocks for at most `limit_ms`; 0: looks once. If several ranks
/// have sent, each gets its turn. Communicator::probe() in tutti/communicator.h says the rest.
TUTTI_API tutti_result_t tutti_probe(int64_t limit_ms, tutti_comm_t comm, int* peer);

/// Opens a group of calls, and ends it. The calls that this thread makes in between begin together at the outermost
/// tutti_group_end(), which blocks until those are over that block, and gives the first error: of an argument, then
/// none of them is made; else of a call. Sends and receives of a group cannot deadlock. A rank may send to itself
/// there. Joins and splits of a group come before its calls (tutti_comm_init_rank()). tutti_memory_allocate() and
/// tutti_op_create_custom() are refused in a group. tutti::group_start() in tutti/group.h says the rest.
TUTTI_API tutti_result_t tutti_group_start(void);
TUTTI_API tutti_result_t tutti_group_end(void);
/// @}

/// @name Works
/// @{

/// Advances what can advance, and does not block. *done = 1 once the call is complete or has failed, else 0. Gives the
/// error of the call.
TUTTI_API tutti_result_t tutti_work_test(tutti_work_t work, int* done);
/// Blocks until the call is complete. Gives the error of the call. Calling it again gives the same again.
TUTTI_API tutti_result_t tutti_work_wait(tutti_work_t work);
/// Blocks until the call is complete, but at most `limit_ms`. *done = 1 once the call is complete or has failed, else
/// 0: that time has passed is no error, and the call goes on. Gives the error of the call.
TUTTI_API tutti_result_t tutti_work_wait_for(tutti_work_t work, int64_t limit_ms, int* done);

/// How long the call waits for a peer or a GPU that does not come to it, from now on; 0: as long as the communicator
/// says. The time that it has waited already counts. Calls that a group does in one pass have one timeout, the one that
/// was set last. If the call is over, nothing happens. Does not block. Thread-safe: also while another thread waits for
/// the call. TUTTI_INVALID_ARGUMENT for a negative one, and in a group that has not ended; the call goes on as it was.
TUTTI_API tutti_result_t tutti_work_set_timeout(tutti_work_t work, int64_t timeout_ms);

/// Is told once that a call is complete, and how: as tutti_work_wait() would say it. `text` is empty for
/// TUTTI_SUCCESS, and valid during the call only.
typedef void (*tutti_complete_function)(void* user, tutti_result_t result, tutti_error_code_t code, const char* text);
/// Has a thread of the library complete the call, as with TUTTI_PROGRESS_THREAD, and then call `tell`. The buffers are
/// free then. May be called several times. `tell` may start calls. It must not block, nor finalize or destroy a
/// communicator, nor free a work. tutti_comm_destroy() waits until `tell` has returned. This function does not block.
TUTTI_API tutti_result_t tutti_work_on_complete(tutti_work_t work, tutti_complete_function tell, void* user);
/// Frees the work. Blocks until the call is complete. An error that nobody was given is logged when the communicator is
/// left.
TUTTI_API tutti_result_t tutti_work_free(tutti_work_t work);
/// @}

// NOLINTEND(modernize-use-using)
#ifdef __cplusplus
}
#endif
