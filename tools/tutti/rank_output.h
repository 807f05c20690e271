// Writes the ranks' output line by line, each with its rank in front: "[2] loss 0.25".
#pragma once

#include <string>
#include <vector>

namespace tutti::tools {

// The reading ends of the ranks' pipes, and what has come of lines that are not yet complete.
class RankOutput {
 public:
  ~RankOutput();

  // Makes a pipe whose lines will be written to `target` (1 or 2) tagged with `rank`. Returns its writing end, which is
  // the caller's; -1 with errno set when the system has none left.
  int add(int rank, int target);

  // Reads and writes what is there, without blocking on the ranks. `fds()` says where more may come from.
  void forward();
  std::vector<int> fds() const;

 private:
  struct Stream {
    int fd;
    int target;
    std::string tag;
    std::string line;
  };
  static bool forward(Stream& stream);  // false: it has ended
  std::vector<Stream> streams_;
};

}  // namespace tutti::tools
