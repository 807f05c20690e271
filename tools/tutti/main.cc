#include "program.h"

int main(int argc, char** argv) { return tutti::internal::tools::run_program(argc, argv); }
