/* What the tests of tutti/tutti.h have in common. They are C99, so that a C compiler reads the header. */
#ifndef TUTTI_TESTS_C_PROGRAM_H
#define TUTTI_TESTS_C_PROGRAM_H

#include <stddef.h>
#include <sys/types.h>

#include "tutti/tutti.h"

/* Says what is not so, and lets the program fail at its end. */
void expect(int is_so, const char* what, const char* file, int line);
#define EXPECT(what) expect((what), #what, __FILE__, __LINE__)

/* Fails where the result is another one, or where the last error of the thread does not say `words`. */
void expect_result(tutti_result_t result, tutti_result_t expected, const char* words, const char* what,
                   const char* file, int line);
#define SUCCEEDS(call) expect_result((call), TUTTI_SUCCESS, "", #call, __FILE__, __LINE__)
#define FAILS(call, expected, words) expect_result((call), (expected), (words), #call, __FILE__, __LINE__)

/* What a rank does: it frees nothing of `world`. */
typedef void (*rank_body)(tutti_comm_t world, int rank, int size);

/* Runs body in a process for each rank; they meet by a unique id. A rank that fails fails the program. */
void run_ranks(const char* transport, int size, rank_body body);

/* With short times, so that a test that fails ends soon. */
tutti_config_t config_for(const char* transport);

/* Runs body(argument) in a child. Expects that it fails nothing, or kills itself. */
pid_t start_child(void (*body)(void* argument), void* argument);
void wait_for(pid_t child);
void in_child(void (*body)(void* argument), void* argument);

/* Ends a child at once: what the threads of its parent held is found by nobody there, and so counts as leaked. */
void end_child(void);

void sleep_ms(int milliseconds);
int64_t now_ms(void);

/* joining.c: a store of files of a folder. */
tutti_store_t store_in(char* folder, int adds);
void remove_folder(const char* folder);

/* collectives.c */
void all_collectives(tutti_comm_t world, int rank, int size);
void all_types(tutti_comm_t world, int rank, int size);
void started_calls(tutti_comm_t world, int rank, int size);
void parts_and_memory(tutti_comm_t world, int rank, int size);

/* choices.c */
void scans(tutti_comm_t world, int rank, int size);
void algorithms_and_orders(tutti_comm_t world, int rank, int size);
void other_orders_are_a_mismatch(tutti_comm_t world, int rank, int size);
void choices_are_told(tutti_comm_t world, int rank, int size);
void join_by_environment_and_config(void);

/* joining.c */
void join_by_two_ids(void);
void join_by_store(void);
void join_by_store_that_adds(void);
void join_by_store_with_stale_keys(void);
void refuse_wrong_ids(void);
void refuse_wrong_configs(void);

/* errors.c */
void refuse_nulls(void);
void refuse_wrong_numbers(tutti_comm_t world, int rank, int size);
void both_hear_of_a_mismatch(tutti_comm_t world, int rank, int size);
void an_abort_reaches_all(tutti_comm_t world, int rank, int size);
void a_lost_rank_is_told_without_a_call(tutti_comm_t world, int rank, int size);
void a_forked_child_is_refused(tutti_comm_t world, int rank, int size);
void a_finalized_communicator_is_refused(tutti_comm_t world, int rank, int size);

/* leaving.c */
void leaving_waits_for_nobody(const char* transport);

/* works.c */
void works_are_told_of(tutti_comm_t world, int rank, int size);
void works_time_out(tutti_comm_t world, int rank, int size);

void works_time_out_by_their_own_timeout(tutti_comm_t world, int rank, int size);

/* subgroups.c */
void groups_of_some_ranks(const char* transport);
void groups_begin_as_their_communicator(const char* transport);
void fifty_groups(const char* transport);

/* messages.c */
void sends_and_groups(tutti_comm_t world, int rank, int size);

/* groups.c */
void one_thread_has_all_ranks(const char* transport);
void two_processes_have_two_ranks_each(const char* transport);
void joins_and_calls_in_one_group(const char* transport);
void one_thread_splits_all_ranks(const char* transport);
void refuse_wrong_groups(void);

#endif
