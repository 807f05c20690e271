// The loop of every vector kernel. Highway includes this file once per instruction set.
//
// A Port says how elements of one type become cells: a Cell is the least that is loaded at once, one or two vectors of
// the accumulation type. The loop takes several cells a round: evaluates the tree for each (a group's part of it in
// registers), divides for avg, puts the canonical NaN in unless the round is plain, packs the cells into what is stored
// and stores that to every target. Cells never meet each other, so how elements are spread over the lanes of a cell
// does not matter as long as load, pack and store agree.
#if defined(TUTTI_REDUCE_KERNEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_REDUCE_KERNEL_INL_H_
#undef TUTTI_REDUCE_KERNEL_INL_H_
#else
#define TUTTI_REDUCE_KERNEL_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "memory/fetch.h"
#include "reduce/kernel.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::internal {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

template <class T, bool kWhole>
struct PlainPort;

template <template <class, bool> class PortOf, class T, Op op>
void run_port(const Task& task) {
  reduce_elements<T, op>(task, 0, task.count);
}

#else

namespace hn = hwy::HWY_NAMESPACE;

// Elements of 16 bytes, for what is left when no whole round is; or of a whole vector.
template <class T, bool kWhole>
using TagOf = std::conditional_t<kWhole, hn::ScalableTag<T>, hn::FixedTag<T, 16 / sizeof(T)> >;

template <class D_, int kVectors_>
struct CellOf {
  using D = D_;
  static constexpr int kVectors = kVectors_;
  hn::Vec<D> v[kVectors];
};

template <bool kStream, class D>
HWY_INLINE void store_vector(D d, hn::Vec<D> v, hn::TFromD<D>* to) {
  if constexpr (kStream) {
    hn::Stream(v, d, to);
  } else {
    hn::StoreU(v, d, to);
  }
}

template <class V>
HWY_INLINE auto nan_in_either(V a, V b) {
  return hn::Or(hn::IsNaN(a), hn::IsNaN(b));
}
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
// One comparison: the conversions of float16 want the same units of the processor.
HWY_INLINE hn::Mask512<float> nan_in_either(hn::Vec512<float> a, hn::Vec512<float> b) {
  return {_mm512_cmp_ps_mask(a.raw, b.raw, _CMP_UNORD_Q)};
}
#endif

template <int kCells, class Cell>
HWY_INLINE bool any_nan(const Cell* cells) {
  constexpr int kVectors = kCells * Cell::kVectors;
  const auto vector = [&](int i) HWY_ATTR { return cells[i / Cell::kVectors].v[i % Cell::kVectors]; };
  auto nan = nan_in_either(vector(0), vector(kVectors - 1));
  for (int i = 1; i + 1 < kVectors; i += 2) nan = hn::Or(nan, nan_in_either(vector(i), vector(i + 1)));
  return !hn::AllFalse(typename Cell::D(), nan);
}

// Element and accumulation type are the same.
template <class T_, bool kWhole>
struct PlainPort {
  using T = T_;
  using D = TagOf<T, kWhole>;
  using Cell = CellOf<D, 1>;
  static constexpr std::size_t kElements = hn::MaxLanes(D());
  static constexpr int kCells = kWhole ? 4 : 1;  // a round

  template <bool kPartial>
  static HWY_INLINE Cell load(const std::byte* from, std::size_t i) {
    return {{hn::LoadU(D(), reinterpret_cast<const T*>(from) + i)}};
  }
  static HWY_INLINE bool is_plain(const Cell* cells) {
    if constexpr (hwy::IsFloat<T>()) return !any_nan<kCells>(cells);
    return true;
  }
  using Packed = Cell;
  static HWY_INLINE const Cell& pack(const Cell& cell, bool) { return cell; }
  template <bool kStream>
  static HWY_INLINE void store(const Cell& cell, std::byte* to, std::size_t i) {
    store_vector<kStream>(D(), cell.v[0], reinterpret_cast<T*>(to) + i);
  }
};

template <class D>
HWY_INLINE hn::Vec<D> multiply(D d, hn::Vec<D> a, hn::Vec<D> b) {
  using T = hn::TFromD<D>;
  if constexpr (sizeof(T) == 1) {  // no such instruction: even and odd bytes as 16-bit numbers
    const hn::Repartition<std::uint16_t, D> d16;
    const auto a16 = hn::BitCast(d16, a), b16 = hn::BitCast(d16, b);
    const auto even = hn::And(hn::Mul(a16, b16), hn::Set(d16, 0x00ff));
    const auto odd = hn::ShiftLeft<8>(hn::Mul(hn::ShiftRight<8>(a16), hn::ShiftRight<8>(b16)));
    return hn::BitCast(d, hn::Or(even, odd));
  } else {
    return hn::Mul(a, b);
  }
}

// The instruction gives either operand, or a NaN, where one is NaN, and either zero of two: so ask both ways. Bits of a
// NaN or-ed with any others are a NaN, and those of two zeros are the negative one if there is one.
template <class V>
HWY_INLINE V float_min(V a, V b) {
  return hn::Or(hn::Min(a, b), hn::Min(b, a));
}

// As combine<op>() in element.h.
template <Op op, class D>
HWY_INLINE hn::Vec<D> combine_vectors(D d, hn::Vec<D> a, hn::Vec<D> b) {
  constexpr bool kFloat = hwy::IsFloat<hn::TFromD<D> >();
  if constexpr (op == Op::sum) {
    return hn::Add(a, b);
  } else if constexpr (op == Op::prod) {
    return multiply(d, a, b);
  } else if constexpr (op == Op::band) {
    return hn::And(a, b);
  } else if constexpr (op == Op::bor) {
    return hn::Or(a, b);
  } else if constexpr (op == Op::bxor) {
    return hn::Xor(a, b);
  } else if constexpr (op == Op::min) {
    if constexpr (kFloat) return float_min(a, b);
    return hn::Min(a, b);
  } else {
    if constexpr (kFloat) return hn::Neg(float_min(hn::Neg(a), hn::Neg(b)));
    return hn::Max(a, b);
  }
}

template <Op op, class Cell>
HWY_INLINE Cell combine_cells(const Cell& a, const Cell& b) {
  Cell result;
  for (int k = 0; k < Cell::kVectors; ++k) result.v[k] = combine_vectors<op>(typename Cell::D(), a.v[k], b.v[k]);
  return result;
}

template <class Cell>
HWY_INLINE void divide(Cell& cell, std::uint32_t leaves) {
  using T = hn::TFromD<typename Cell::D>;
  if constexpr (hwy::IsFloat<T>())
    for (auto& v : cell.v) v = hn::Div(v, hn::Set(typename Cell::D(), static_cast<T>(leaves)));
}

template <class Cell>
HWY_INLINE void put_canonical_nan(Cell& cell) {
  using T = hn::TFromD<typename Cell::D>;
  if constexpr (hwy::IsFloat<T>()) {
    const auto canonical = hn::Set(typename Cell::D(), std::bit_cast<T>(kCanonicalNan<T>));
    for (auto& v : cell.v) v = hn::IfThenElse(hn::IsNaN(v), canonical, v);
  }
}

template <class Port, bool kStream>
HWY_INLINE void store_partial_round(const typename Port::Cell* cells, std::byte* to, std::size_t i) {
  for (int c = 0; c < Port::kCells; ++c) Port::template store_partial<kStream>(cells[c], to, i + c * Port::kElements);
}
template <class Port, bool kStream>
HWY_INLINE void store_round(const typename Port::Packed* packed, std::byte* to, std::size_t i) {
  for (int c = 0; c < Port::kCells; ++c) Port::template store<kStream>(packed[c], to, i + c * Port::kElements);
}

// What the stores of a task are: bits of one number, for compilers keep single bools in vector masks.
using Stores = std::uint32_t;
inline constexpr Stores kStreams = 1;     // they go past the cache
inline constexpr Stores kToPartials = 2;  // some target takes accumulation values
inline constexpr Stores kToElements = 4;  // some target takes elements

// Finishes and stores elements [i, i + kCells * kElements). What is seldom (a NaN, say) is asked for once a round: a
// branch that is never taken costs less than a selection in every vector.
template <class Port>
HWY_INLINE void deliver(typename Port::Cell* cells, const Task& task, Stores stores, std::size_t i) {
  if (task.leaves != 0)
    for (int c = 0; c < Port::kCells; ++c) divide(cells[c], task.leaves);
  const bool plain = Port::is_plain(cells);
  if (HWY_UNLIKELY(!plain))
    for (int c = 0; c < Port::kCells; ++c) put_canonical_nan(cells[c]);
  if constexpr (NarrowFloat<typename Port::T>) {
    if (HWY_UNLIKELY((stores & kToPartials) != 0)) {
      for (const ReduceTarget& target : task.targets) {
        if (!target.partial) continue;
        (stores & kStreams) != 0 ? store_partial_round<Port, true>(cells, target.data, i)
                                 : store_partial_round<Port, false>(cells, target.data, i);
      }
      if ((stores & kToElements) == 0) return;
    }
  }
  typename Port::Packed packed[Port::kCells];
  for (int c = 0; c < Port::kCells; ++c) packed[c] = Port::pack(cells[c], plain);
  for (const ReduceTarget& target : task.targets) {
    if (NarrowFloat<typename Port::T> && target.partial) continue;
    if (HWY_UNLIKELY((stores & kStreams) != 0)) {
      store_round<Port, true>(packed, target.data, i);
    } else {
      store_round<Port, false>(packed, target.data, i);
    }
  }
}

// Calls body.operator()<size, partial>() for the group's own.
template <class Port, class Body>
HWY_INLINE void with_shape(const SourceGroup& group, const Body& body) {
  const auto with_form = [&]<int kSize>() HWY_ATTR {
    if constexpr (NarrowFloat<typename Port::T>) {
      if (group.partial) return body.template operator()<kSize, true>();
    }
    body.template operator()<kSize, false>();
  };
  switch (group.size) {
    case 1: return with_form.template operator()<1>();
    case 2: return with_form.template operator()<2>();
    case 3: return with_form.template operator()<3>();
    case 4: return with_form.template operator()<4>();
    default: return with_form.template operator()<8>();
  }
}

// The canonical tree over from[0, kSize), for the cell at element i.
template <class Port, Op op, int kSize, bool kPartial>
HWY_INLINE typename Port::Cell canonical_tree(const std::byte* const* from, std::size_t i) {
  if constexpr (kSize == 1) {
    return Port::template load<kPartial>(from[0], i);
  } else {
    constexpr int kLeft = static_cast<int>(std::bit_floor(kSize - 1u));
    return combine_cells<op>(canonical_tree<Port, op, kLeft, kPartial>(from, i),
                             canonical_tree<Port, op, kSize - kLeft, kPartial>(from + kLeft, i));
  }
}

template <class Port>
struct Round {
  static constexpr std::size_t kElements = Port::kCells * Port::kElements;
  typename Port::Cell cells[Port::kCells];
};

template <class Port, Op op, int kSize, bool kPartial>
HWY_INLINE Round<Port> evaluate(const std::byte* const* from, std::size_t i) {
  Round<Port> round;
  for (int c = 0; c < Port::kCells; ++c) {
    round.cells[c] = canonical_tree<Port, op, kSize, kPartial>(from, i + c * Port::kElements);
  }
  return round;
}

// In the round at element i, of `count`: fetches the lines of a later round for writing.
template <class Port, bool kPartial>
HWY_INLINE void fetch_ahead(const std::byte* from, std::size_t i, std::size_t count) {
  using T = typename Port::T;
  constexpr std::size_t kBytes = kPartial ? sizeof(AccumulationOf<T>) : sizeof(T);
  fetch_ahead_to_write<Round<Port>::kElements * kBytes>(from, i * kBytes, count * kBytes);
}

// All sources form one group: whole rounds from i on; returns where they end. kFetches: one of two
// sources has fetches_to_write. That is a loop of its own, so that the usual one has nothing to ask in a round.
template <class Port, Op op, int kSize, bool kPartial, bool kFetches>
HWY_NOINLINE std::size_t run_one_group(const Task& shared, Stores stores, std::size_t i) {
  const Task task = shared;  // in registers: the compiler must assume that stores change what it refers to
  const std::byte* from[kSize];
  for (int s = 0; s < kSize; ++s) from[s] = task.sources[s].data;
  [[maybe_unused]] const std::byte* const fetched = from[kFetches && !task.sources[0].fetches_to_write ? 1 : 0];
  for (; task.count - i >= Round<Port>::kElements; i += Round<Port>::kElements) {
    if constexpr (kFetches) fetch_ahead<Port, kPartial>(fetched, i, task.count);
    Round<Port> round = evaluate<Port, op, kSize, kPartial>(from, i);
    deliver<Port>(round.cells, task, stores, i);
  }
  return i;
}

// Any tree, by a stack of rounds in the first-level cache.
template <class Port, Op op>
HWY_NOINLINE std::size_t run_groups(const Task& task, Stores stores, std::size_t i) {
  Round<Port> waiting[kMaxDepth];
  for (; task.count - i >= Round<Port>::kElements; i += Round<Port>::kElements) {
    Round<Port>* top = waiting;
    for (const SourceGroup& group : task.groups) {
      with_shape<Port>(group, [&]<int kSize, bool kPartial>() HWY_ATTR {
        const std::byte* from[kSize];
        for (int s = 0; s < kSize; ++s) from[s] = task.sources[group.first + s].data;
        Round<Port> round = evaluate<Port, op, kSize, kPartial>(from, i);
        for (int joins = group.joins; joins > 0; --joins) {
          --top;
          for (int c = 0; c < Port::kCells; ++c) round.cells[c] = combine_cells<op>(top->cells[c], round.cells[c]);
        }
        *top++ = round;
      });
    }
    Round<Port> round = waiting[0];
    deliver<Port>(round.cells, task, stores, i);
  }
  return i;
}

template <class Port, Op op>
HWY_INLINE std::size_t run_rounds(const Task& task, Stores stores, std::size_t i) {
  if (task.count - i < Round<Port>::kElements) return i;
  if (task.groups.size() > 1) return run_groups<Port, op>(task, stores, i);
  with_shape<Port>(task.groups[0], [&]<int kSize, bool kPartial>() HWY_ATTR {
    if constexpr (kSize == 2)  // such sources come from the other one of two ranks
      if (task.sources[0].fetches_to_write || task.sources[1].fetches_to_write)
        return void(i = run_one_group<Port, op, kSize, kPartial, true>(task, stores, i));
    i = run_one_group<Port, op, kSize, kPartial, false>(task, stores, i);
  });
  return i;
}

// Non-temporal stores need whole vectors at their place: the first element from which on all targets have that, or
// count if there is none, or nothing is to go past the cache.
template <class Port>
HWY_INLINE std::size_t first_to_stream(const Task& task) {
  constexpr std::size_t kVector = hn::MaxLanes(typename Port::D()) * sizeof(hn::TFromD<typename Port::D>);
  if (!task.stream || task.targets.empty()) return task.count;
  const auto bytes_of = [](const ReduceTarget& target) {
    return target.partial ? sizeof(AccumulationOf<typename Port::T>) : sizeof(typename Port::T);
  };
  const auto at = [&](const ReduceTarget& target, std::size_t i) {
    return (reinterpret_cast<std::uintptr_t>(target.data) + i * bytes_of(target)) % kVector;
  };
  const ReduceTarget& first = task.targets[0];
  const std::size_t head = (kVector - at(first, 0)) % kVector / bytes_of(first);
  for (const ReduceTarget& target : task.targets)
    if (at(target, head) != 0) return task.count;
  return std::min(head, task.count);
}

// Whole rounds of full vectors, then of 16 bytes, then single elements.
template <template <class, bool> class PortOf, class T, Op op>
void run_port(const Task& task) {
  using Wide = PortOf<T, true>;
  using Small = PortOf<T, false>;
  Stores stores = 0;
  for (const ReduceTarget& target : task.targets) stores |= target.partial ? kToPartials : kToElements;
  std::size_t i = first_to_stream<Wide>(task);
  if (i < task.count) {
    reduce_elements<T, op>(task, 0, i);
    i = run_rounds<Wide, op>(task, stores | kStreams, i);
    hwy::FlushStream();
  } else {
    i = run_rounds<Wide, op>(task, stores, 0);
  }
  i = run_rounds<Small, op>(task, stores, i);
  if (i < task.count) reduce_elements<T, op>(task, i, task.count);
}

#endif

template <template <class, bool> class PortOf, class T>
Kernel kernel_of(Op op) {
  switch (op) {
    case Op::prod: return run_port<PortOf, T, Op::prod>;
    case Op::min: return run_port<PortOf, T, Op::min>;
    case Op::max: return run_port<PortOf, T, Op::max>;
    default: return run_port<PortOf, T, Op::sum>;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tutti::internal
HWY_AFTER_NAMESPACE();

#endif
