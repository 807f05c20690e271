// A file that holds a table, for as long as a test needs it.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

namespace tutti::internal {

class TableFile {
 public:
  explicit TableFile(const std::string& text) {
    char name[] = "/tmp/tutti_table_XXXXXX";
    close(mkstemp(name));
    path_ = name;
    std::ofstream(path_) << text;
  }
  ~TableFile() { std::remove(path_.c_str()); }
  TableFile(const TableFile&) = delete;
  TableFile& operator=(const TableFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace tutti::internal
