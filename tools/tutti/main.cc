#include "program.h"

int main(int argc, char** argv) { return tutti::tools::run_program(argc, argv); }
