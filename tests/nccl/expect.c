/* What is not so is said, and counted. */
#include <stdio.h>
#include <string.h>

#include "ranks.h"

static int wrong = 0;

void expect(int is_so, const char* what, const char* file, int line) {
  if (is_so) return;
  ++wrong;
  fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
}

void expect_result(ncclResult_t result, ncclResult_t expected, const char* words, const char* what, const char* file,
                   int line) {
  const char* const said = ncclGetLastError(NULL);
  if (result == expected && (result == ncclSuccess || strstr(said, words) != NULL)) return;
  ++wrong;
  fprintf(stderr, "%s:%d: %s: %s (%s)\n", file, line, what, ncclGetErrorString(result), said);
}

int exit_status(void) { return wrong != 0; }
