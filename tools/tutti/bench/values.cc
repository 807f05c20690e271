#include "bench/values.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "collectives/catalogue.h"
#include "executor/plan.h"
#include "reduce/reference.h"
#include "selection/choose.h"
#include "tutti/error.h"
#include "types/collective.h"

namespace tutti::internal::tools {
namespace {

// SplitMix64's finalizer (Steele, Lea, Flood 2014): every bit of the result depends on every bit of x.
std::uint64_t scramble(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// The shape of an IEEE type: sign, exponent, fraction.
struct FloatShape {
  int exponent_bits, fraction_bits;
};
std::optional<FloatShape> float_shape(DType dtype) {
  switch (dtype) {
    case DType::float32: return FloatShape{8, 23};
    case DType::float64: return FloatShape{11, 52};
    case DType::float16: return FloatShape{5, 10};
    case DType::bfloat16: return FloatShape{8, 7};
    case DType::float8_e4m3: return FloatShape{4, 3};
    case DType::float8_e5m2: return FloatShape{5, 2};
    default: return std::nullopt;
  }
}

// A number between 2^-9 and 2^4 of either sign (float8_e4m3: from 2^-6 on), one in 4096 a denormal: enough to show a
// flush to zero, few enough that the processor's slow path for them does not show in a time. Half the elements are made
// so that half the ranks hold the same large number there, of either sign: where these cancel, the result is what
// rounding left of the others. random differs from rank to rank, common does not.
std::uint64_t float_bits(FloatShape shape, std::uint64_t random, std::uint64_t common) {
  const std::uint64_t bias = (std::uint64_t{1} << (shape.exponent_bits - 1)) - 1;
  const std::uint64_t sign = random >> 63, draw = random >> 53 & 0x3ff;  // 10 bits
  const bool denormal = (random >> 41 & 0xfff) == 0, large = common >> 63 == 1 && (draw & 64) != 0;
  const std::uint64_t least = bias > 9 ? bias - 9 : 1, largest = std::min(bias + 13, 2 * bias - 2);
  const std::uint64_t exponent = denormal ? 0 : large ? largest : least + draw % (bias + 4 - least);
  const std::uint64_t fraction = (large ? common : random) & ((std::uint64_t{1} << shape.fraction_bits) - 1);
  return (sign << shape.exponent_bits | exponent) << shape.fraction_bits | fraction;
}

template <class Bits>
void write_bits(std::byte* out, std::size_t first, std::size_t count, DType dtype, int rank) {
  const auto shape = float_shape(dtype);
  const auto seed = scramble(static_cast<std::uint64_t>(rank) + 1);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t place = (first + i) % kPeriod * 0x9e3779b97f4a7c15, random = scramble(seed + place);
    const bool is_false = dtype == DType::boolean && random >> 63 != 0;  // half of them: few bytes are 0 by chance
    const auto bits = static_cast<Bits>(shape ? float_bits(*shape, random, scramble(place)) : is_false ? 0 : random);
    std::memcpy(out + i * sizeof bits, &bits, sizeof bits);
  }
}

void write_elements(std::byte* out, std::size_t first, std::size_t count, DType dtype, int rank) {
  switch (size_of(dtype)) {
    case 1: return write_bits<std::uint8_t>(out, first, count, dtype, rank);
    case 2: return write_bits<std::uint16_t>(out, first, count, dtype, rank);
    case 4: return write_bits<std::uint32_t>(out, first, count, dtype, rank);
    default: return write_bits<std::uint64_t>(out, first, count, dtype, rank);
  }
}

// T[lo, hi) in postfix.
void append_canonical(int lo, int hi, Expression& to) {
  if (hi - lo == 1) return to.push_back(lo);
  append_canonical(lo, canonical_split(lo, hi), to);
  append_canonical(canonical_split(lo, hi), hi, to);
  to.push_back(kCombine);
}

}  // namespace

void write_input(std::byte* out, std::size_t first, std::size_t count, DType dtype, int rank) {
  const std::size_t element = size_of(dtype);
  const std::size_t fresh = std::min(count, kPeriod);
  write_elements(out, first, fresh, dtype, rank);
  for (std::size_t done = fresh; done < count;) {
    const std::size_t more = std::min(done / kPeriod * kPeriod, count - done);
    std::memcpy(out + done * element, out, more * element);
    done += more;
  }
}

CombiningOrder derive_order(const BenchOptions& options, Algorithm algorithm, int ranks, std::size_t count) {
  const std::size_t total = count * parts_of(options.collective, ranks);
  const AlgorithmEntry* entry = find_algorithm(options.collective, algorithm);
  if (entry == nullptr) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("there is no {} by {}", to_string(options.collective), to_string(algorithm)));
  }
  // However many there are of them: all chunks of a slice are combined alike.
  const std::size_t bytes = total * size_of(options.dtype);
  const int chunks =
      entry->pipelined
          ? internal::chunks_of(bytes, internal::default_chunk_bytes(options.collective, algorithm, {bytes, ranks}))
          : 1;
  const Layout layout = Layout::of(ranks);
  const auto schedules = build_all(*entry, layout, {.root = options.root, .chunks = chunks});
  const Proof proof = verify(schedules, layout, {options.collective, options.root, options.order});
  if (!proof.holds) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the schedules of {} by {} for {} ranks are refuted: {}", to_string(options.collective),
                            to_string(algorithm), ranks, proof.reason));
  }
  return {internal::partition_for(schedules.front(), options.dtype, total), proof.slices};
}

std::uint64_t Expectation::count_wrong(const std::byte* out, std::size_t count, int rank, const CombiningOrder& order) {
  const std::size_t element = size_of(options_.dtype);
  const Distribution holds(options_.collective, ranks_, options_.root);
  const RowRange rows = holds.output(rank);
  const std::size_t first = static_cast<std::size_t>(rows.at) * count;  // of the message, that the rank gets
  const std::size_t after = first + static_cast<std::size_t>(rows.count) * count;
  std::uint64_t wrong = 0;
  if (holds.traits.is_scan() && rows.count > 0) {
    Expression prefix;
    append_canonical(0, holds.traits.result == Result::prefix ? rank + 1 : rank, prefix);
    return differing(out, combined(prefix), 0, count);
  }
  for (std::size_t s = 0; holds.traits.combines() && s < order.slices.size(); ++s) {
    const ElementRange slice = order.partition.slice(s);
    const std::size_t begin = std::max(slice.begin, first), end = std::min(slice.end, after);
    if (begin >= end) continue;
    wrong += differing(out + (begin - first) * element, combined(order.slices[s]), begin, end - begin);
  }
  for (int i = 0; holds.traits.result == Result::moved && i < rows.count; ++i) {
    const int row = rows.first + i * rows.step, origin = holds.origin(row);
    const std::size_t given = static_cast<std::size_t>(holds.input(origin).index(row)) * count;
    wrong += differing(out + static_cast<std::size_t>(i) * count * element, input_of(origin), given, count);
  }
  return wrong;
}

const Expectation::Table& Expectation::input_of(int rank) {
  Table& table = inputs_[rank];
  if (table.empty()) {
    table.resize(kPeriod * size_of(options_.dtype));
    write_input(table.data(), 0, kPeriod, options_.dtype, rank);
  }
  return table;
}

const Expectation::Table& Expectation::combined(const Expression& expression) {
  Table& table = combined_[expression];
  if (!table.empty()) return table;
  std::vector<ReduceSource> sources;
  for (const int leaf : expression) {
    if (leaf == kCombine)
      ++sources.back().joins;
    else
      sources.push_back({.data = input_of(leaf).data()});
  }
  table.resize(kPeriod * size_of(options_.dtype));
  const ReduceSpec spec{
      .dtype = options_.dtype, .op = options_.op, .finish = true, .leaves = static_cast<std::uint32_t>(sources.size())};
  const ReduceTarget target{.data = table.data()};
  const FloatEnvironment ieee;
  reduce_reference(spec, sources, {&target, 1}, kPeriod);
  return table;
}

std::uint64_t Expectation::differing(const std::byte* out, const Table& table, std::size_t first,
                                     std::size_t count) const {
  const std::size_t element = size_of(options_.dtype);
  std::uint64_t wrong = 0;
  for (std::size_t done = 0; done < count;) {
    const std::size_t at = (first + done) % kPeriod, run = std::min(kPeriod - at, count - done);
    const std::byte *mine = out + done * element, *right = table.data() + at * element;
    if (std::memcmp(mine, right, run * element) != 0) {
      for (std::size_t i = 0; i < run; ++i) wrong += std::memcmp(mine + i * element, right + i * element, element) != 0;
    }
    done += run;
  }
  return wrong;
}

std::uint64_t digest(const void* bytes, std::size_t size) {
  unsigned char hash[EVP_MAX_MD_SIZE];
  EVP_Digest(bytes, size, hash, nullptr, EVP_sha256(), nullptr);
  std::uint64_t word = 0;
  for (int i = 0; i < 8; ++i) word = word << 8 | hash[i];
  return word;
}

}  // namespace tutti::internal::tools
