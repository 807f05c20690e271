#include "reduce/custom.h"

#include <algorithm>
#include <exception>
#include <vector>

#include "reduce/reduction.h"
#include "tutti/error.h"
#include "types/kinds.h"

namespace tutti::internal {
namespace {

constexpr std::size_t kPieceBytes = 8192;  // of the accumulation type, each; they stay in the cache

// One source to one target, in the target's form.
void convert(DType dtype, const ReduceSource& source, const ReduceTarget& target, std::size_t count) {
  Reduction({.dtype = dtype}, {&source, 1}).run({&source, 1}, {&target, 1}, count, false);
}

// The values of a piece: place p of the stack is either a source's memory, or piece p of its own memory.
class Pieces {
 public:
  Pieces(const CustomOperator& by, DType dtype, std::span<const ReduceSource> sources)
      : by_(by), dtype_(dtype), two_forms_(is_narrow_float(dtype)), sources_(sources) {
    std::size_t depth = 0, most = 0;
    for (const ReduceSource& source : sources) {
      most = std::max(most, ++depth);
      depth -= source.joins;
    }
    memory_.resize(most * kPieceBytes);
    values_.resize(most);
  }

  // The tree over elements [begin, begin + count) of the sources; in the accumulation type.
  const std::byte* evaluate(std::size_t begin, std::size_t count) {
    std::size_t size = 0;
    for (const ReduceSource& source : sources_) {
      values_[size] = load(source, begin, count, piece(size));
      for (int joins = source.joins; joins > 0; --joins) {
        const std::size_t left = size - 1;
        combine(values_[left], values_[size], piece(left), count);
        values_[left] = piece(left);
        size = left;
      }
      ++size;
    }
    return values_[0];
  }

 private:
  std::byte* piece(std::size_t place) { return memory_.data() + place * kPieceBytes; }

  const std::byte* load(const ReduceSource& source, std::size_t begin, std::size_t count, std::byte* to) const {
    const bool converts = two_forms_ && !source.partial;
    const std::byte* const from = source.data + begin * (converts ? size_of(dtype_) : accumulation_size_of(dtype_));
    if (!converts) return from;
    convert(dtype_, {from}, {to, true}, count);
    return to;
  }

  void combine(const std::byte* left, const std::byte* right, std::byte* out, std::size_t count) const {
    const auto fail = [&](const std::string& what) {
      throw Error(ErrorCode::aborted, "the operator \"" + by_.name + "\" threw: " + what);
    };
    try {
      by_.combine(left, right, out, count);
    } catch (const std::exception& error) {
      fail(error.what());
    } catch (...) {
      fail("something that says nothing");
    }
  }

  const CustomOperator& by_;
  const DType dtype_;
  const bool two_forms_;
  const std::span<const ReduceSource> sources_;
  std::vector<std::byte> memory_;
  std::vector<const std::byte*> values_;
};

}  // namespace

void reduce_by(const CustomOperator& by, DType dtype, const Task& task) {
  Pieces pieces(by, dtype, task.sources);
  const std::size_t accumulation = accumulation_size_of(dtype), at_once = kPieceBytes / accumulation;
  for (std::size_t begin = 0; begin < task.count; begin += at_once) {
    const std::size_t count = std::min(at_once, task.count - begin);
    const std::byte* const result = pieces.evaluate(begin, count);
    for (const ReduceTarget& target : task.targets) {
      const bool converts = is_narrow_float(dtype) && !target.partial;
      std::byte* const to = target.data + begin * (converts ? size_of(dtype) : accumulation);
      if (converts) {
        convert(dtype, {result, 0, true}, {to}, count);
      } else if (to != result) {
        std::memcpy(to, result, count * accumulation);
      }
    }
  }
}

}  // namespace tutti::internal
