/// @file
/// What tutti/tutti.h needs to join: the unique id, the configuration, the caller's store. That header includes this.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tutti/tutti_types.h"

// NOLINTBEGIN(modernize-use-using): C has no `using`

/// @name How ranks join
/// @{

/// Where and how the ranks of one communicator meet. A value: send it to the other ranks as bytes. It holds a secret:
/// who has it can join.
typedef struct tutti_unique_id {
  char bytes[128];  ///< for the library; it notices bytes that were damaged
} tutti_unique_id;

/// How inputs are combined, for tutti_config_t::order.
enum tutti_order {
  TUTTI_ORDER_CANONICAL = 0,  ///< the same bits with every algorithm, transport, message size and placement
  TUTTI_ORDER_ANY = 1,        ///< also by algorithms that cannot keep this order, such as ring
};

/// How much the library says, for tutti_config_t::log_level. Each level includes the ones before it.
enum tutti_log_level {
  TUTTI_LOG_WARN = 0,   ///< what a person should know
  TUTTI_LOG_INFO = 1,   ///< also each decision of joining, and why
  TUTTI_LOG_TRACE = 2,  ///< also each new kind of call, with the algorithm that it uses
};

/// Who advances started calls of host memory, for tutti_config_t::progress. (Those of device memory always have a
/// thread.)
enum tutti_progress {
  TUTTI_PROGRESS_CALLER = 0,  ///< the threads that make calls and wait for them, while they are in the library
  TUTTI_PROGRESS_THREAD = 1,  ///< also a thread of the library: a started call completes while its caller computes
};

/// Takes a line that the library says: one of enum tutti_log_level, the rank of the job that says it, and the text,
/// valid during the call only. tutti::LogSink in tutti/log.h says which threads call it, until when, and that it must
/// not block and must not call the library.
typedef void (*tutti_log_function)(void* user, int level, int rank, const char* text);

/// How a rank joins and waits. Begin with TUTTI_CONFIG_INITIALIZER, and set what should differ. What is not set is as
/// the environment says it (docs/reference/environment.md), and else as tutti::Settings has it. The texts are read
/// during the call only.
typedef struct tutti_config {
  size_t size;                 ///< of this struct, as the program was compiled: TUTTI_CONFIG_INITIALIZER sets it
  const char* transport;       ///< "auto", "shm", "tcp" or "verbs"; the same on every rank
  int64_t timeout_ms;          ///< how long a call waits for a peer that does not come; 0: not set; the same everywhere
  int64_t connect_timeout_ms;  ///< how long a rank tries to reach a peer that is known to exist; 0: not set
  int64_t join_timeout_ms;     ///< how long the ranks may take to start; 0: not set
  int64_t warn_after_ms;       ///< a call that waits for longer is logged, once; 0: not set
  const char* interface_name;  ///< where to listen: an interface ("eth0"), or an address
  int port_first;              ///< the first port to listen on; 0: not set. With a unique id rank 0 listens at its port
  int port_last;               ///< the last port to listen on, included
  const char* verbs_device;    ///< the RDMA port: a device, or device:port ("mlx5_0:1")
  int verbs_gid;               ///< the index of the port's GID; negative: not set
  const char* table;           ///< the file of a table of algorithms, as `tutti tune` writes it; only rank 0 reads it
  int order;                   ///< one of enum tutti_order, for all calls; the same on every rank
  int log_level;               ///< one of enum tutti_log_level; negative: not set
  tutti_log_function log;      ///< takes the lines; null: they go to stderr
  void* log_user;              ///< is passed to `log`
  int progress;                ///< one of enum tutti_progress; negative: not set; each rank may choose for itself
  /// A rank of which nothing is heard for that long is lost; 0: not set; the same everywhere.
  int64_t heartbeat_timeout_ms;
} tutti_config_t;

/// A tutti_config_t in which nothing is set: `tutti_config_t config = TUTTI_CONFIG_INITIALIZER;`
#define TUTTI_CONFIG_INITIALIZER \
  { sizeof(tutti_config_t), NULL, 0, 0, 0, 0, NULL, 0, 0, NULL, -1, NULL, TUTTI_ORDER_CANONICAL, -1, NULL, NULL, -1, 0 }

/// A key-value store of the caller. Keys are short printable texts that begin with "tutti/". Values are at most 4096
/// bytes. One of them is the job's secret: who can read the store may join. A function that returns anything but 0 has
/// failed, and ends the join. They are called during tutti_comm_init_store() only, on its thread; or, in a group,
/// during tutti_group_end(), on a thread of the library.
typedef struct tutti_store {
  void* user;  ///< is passed to the functions
  /// Makes value[0, bytes) visible under `key` to every rank.
  int (*set)(void* user, const char* key, const void* value, size_t bytes);
  /// Blocks until `key` is set, at most `timeout_ms`; then fails. Writes the value to value[0, *bytes), where *bytes is
  /// at most `capacity`.
  int (*get)(void* user, const char* key, void* value, size_t capacity, size_t* bytes, int64_t timeout_ms);
  /// Adds `delta` to the number under `key`, which is 0 at first, and writes the sum to *sum: atomically among all
  /// ranks, and without waiting for one. May be null; the same on every rank. With it, the joins through the store are
  /// numbered there: a later one never reads the keys of an earlier one, whatever process or object joins.
  int (*add)(void* user, const char* key, int64_t delta, int64_t* sum);
} tutti_store_t;
/// @}

// NOLINTEND(modernize-use-using)
