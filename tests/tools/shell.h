// Runs the `tutti` program as a user would.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>

namespace tutti::internal::tools {

struct Result {
  int status = -1;  // exit status; 128 + signal when a signal ended it
  std::string out, err;
};

// Runs a shell command in which $TUTTI is the program, with no TUTTI_ variable of this process's environment.
Result shell(const std::string& command);

// Starts it and returns at once with its process id: that of the program itself when the command begins with "exec".
pid_t start(const std::string& command);

// Waits for what start() began. Returns its exit status as in Result.
int wait_for(pid_t pid);

// Processes whose command line contains `words`.
int count_processes(const std::string& words);

// Waits until count_processes(words) == count. False when that takes longer than `limit`.
bool reaches(const std::string& words, int count, std::chrono::milliseconds limit = std::chrono::seconds(20));

// Words that no other process has in its command line: a number of seconds to sleep.
std::string unique_sleep();

}  // namespace tutti::internal::tools
