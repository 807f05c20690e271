// Buffers of many gigabytes that take little memory: what the tests look at lies in pages of its own, some every 256
// MiB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tutti::internal {

// `rows` rows of `row_bytes`. The probes are the beginning of every 256 MiB of a row, and its end.
class SparseBuffer {
 public:
  // of_input: what is no probe is read as 0, and must not be written. Otherwise it may be written, and is lost.
  SparseBuffer(std::size_t rows, std::size_t row_bytes, bool of_input);
  ~SparseBuffer();
  SparseBuffer(const SparseBuffer&) = delete;
  SparseBuffer& operator=(const SparseBuffer&) = delete;

  std::uint8_t* data() const { return data_; }
  struct Range {
    std::size_t begin, end;
  };
  const std::vector<Range>& probes() const { return probes_; }

 private:
  void map_page(std::size_t at);

  std::size_t mapped_;
  std::uint8_t* data_ = nullptr;
  std::vector<Range> probes_;  // bytes, ascending
};

}  // namespace tutti::internal
