/* What the tests of NCCL's functions have in common. They are written to nccl.h alone, with memory of malloc(), and
   include nothing of tutti: so are the programs that libtutti_nccl is for. C99, so that a C compiler reads it all. */
#ifndef TUTTI_TESTS_NCCL_RANKS_H
#define TUTTI_TESTS_NCCL_RANKS_H

#include <nccl.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Says what is not so, and lets the program fail at its end. */
void expect(int is_so, const char* what, const char* file, int line);
#define EXPECT(what) expect((what), #what, __FILE__, __LINE__)

/* Fails where the result is another one, or where ncclGetLastError() does not say `words`. */
void expect_result(ncclResult_t result, ncclResult_t expected, const char* words, const char* what, const char* file,
                   int line);
#define SUCCEEDS(call) expect_result((call), ncclSuccess, "", #call, __FILE__, __LINE__)
#define FAILS(call, expected, words) expect_result((call), (expected), (words), #call, __FILE__, __LINE__)

/* 1 if something was not so. */
int exit_status(void);

/* What a rank does: it frees nothing of `world`, unless `frees_world` is set. */
// NOLINTNEXTLINE(modernize-use-using): C has no `using`
typedef void (*rank_body)(ncclComm_t world, int rank, int size);
extern int frees_world;

/* Runs body in a process for each rank. Rank 0 makes the unique id, and gives it to the others through a pipe. */
void run_ranks(int size, rank_body body);

/* collectives.c */
void all_collectives(ncclComm_t world, int rank, int size);
void premultiplied_sums(ncclComm_t world, int rank, int size);

/* messages.c */
void sends_and_groups(ncclComm_t world, int rank, int size);
void parts(ncclComm_t world, int rank, int size);
void memories(ncclComm_t world, int rank, int size);

/* errors.c */
void refuse_wrong_calls(ncclComm_t world, int rank, int size);
void refuse_what_cannot_be(ncclComm_t world, int rank, int size);
void refuse_kernels(ncclComm_t world, int rank, int size);
void refuse_what_is_finalized(ncclComm_t world, int rank, int size);
void all_hear_of_a_mismatch(ncclComm_t world, int rank, int size);
void all_hear_of_an_abort(ncclComm_t world, int rank, int size);
void all_hear_of_a_revocation(ncclComm_t world, int rank, int size);
void refuse_wrong_joins(void);

#ifdef __cplusplus
}
#endif
#endif
