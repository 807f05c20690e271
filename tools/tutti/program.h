// The `tutti` program: wires the subcommands together.
#pragma once

namespace tutti::internal::tools {

// As main(): returns the exit status. Call it once.
int run_program(int argc, char** argv);

}  // namespace tutti::internal::tools
