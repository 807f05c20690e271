// reporting_rank WORDS [UID]: a rank, of another user where one is given, that reports WORDS to its launcher and ends
// with status 0. Its status is 3 where it cannot become that user.
#include <unistd.h>

#include <cstdlib>

#include "control/launcher.h"

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  if (argc > 2 && setuid(static_cast<uid_t>(std::atoi(argv[2]))) != 0) return 3;
  const char* const rank = std::getenv("TUTTI_RANK");
  tutti::internal::tell_launcher(rank != nullptr ? std::atoi(rank) : 0, argv[1]);
}
