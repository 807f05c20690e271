// What ranks of a test that are processes heard, for the test to read.
#pragma once

#include <sys/mman.h>

#include <cstdio>
#include <new>
#include <string>

#include "tutti/error.h"

namespace tutti::internal {

// In memory that the ranks of Processes share, if it was made before them.
class Stories {
 public:
  Stories()
      : lines_(static_cast<Line*>(
            ::mmap(nullptr, sizeof(Line) * kMost, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    if (lines_ == MAP_FAILED) throw std::bad_alloc();
  }
  ~Stories() { ::munmap(lines_, sizeof(Line) * kMost); }
  Stories(const Stories&) = delete;
  Stories& operator=(const Stories&) = delete;

  // "peer_lost 2: rank 2 was lost: its process died": without who says it, and without the call.
  void tell(int rank, const Error& error) {
    std::string text = error.what();
    auto behind_name = text.find(": ");
    if (text.substr(0, behind_name).ends_with("(of the job")) behind_name = text.find("): ") + 1;
    text = std::string(to_string(error.code)) + " " + std::to_string(error.peer) + text.substr(behind_name);
    std::snprintf(lines_[rank].text, sizeof lines_[rank].text, "%s", text.substr(0, text.rfind(", during ")).c_str());
  }
  // Empty: it has told none.
  std::string of(int rank) const { return lines_[rank].text; }

 private:
  static constexpr int kMost = 16;
  struct Line {
    char text[512];
  };
  Line* const lines_;
};

}  // namespace tutti::internal
