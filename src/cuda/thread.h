// What one thread of a reduction kernel does. The same code runs on the CPU in the tests, one thread after the other.
//
// An item is a cell: the elements that fill 16 bytes. The thread loads that cell of up to eight sources, all loads
// before the first use; evaluates the canonical tree over them in registers; rounds; stores to every target. More
// sources are more batches, and what their tree keeps waiting lies in shared memory. Where memory is not aligned alike:
//   - cells are laid so that target 0 is aligned;
//   - another source is read in the two aligned blocks that hold a cell's bytes, and shifted. The second block is the
//     next thread's first, so the memory is read once all the same. (The first and the last cell are loose then: no
//     byte outside a source is read.)
//   - another target is written in the largest pieces that its alignment allows.
// Loose elements, those before and after the cells, are items too: the same code with one element in the cell.
//
// A Lane is a thread's place among the others and all memory that it touches:
//   index(), threads()        this thread's number, and how many there are
//   load<bytes>(from)         a Cell whose first `bytes` (1, 2, 4, 8, 16) are those at `from`, a multiple of `bytes`
//   store<bytes>(to, cell)    the inverse
//   waiting(i)                this thread's cell i of what is kept in shared memory
#pragma once

#include "cuda/form.h"
#include "cuda/task.h"

namespace tutti::internal::cuda {

template <std::uint32_t kMultiple>
TUTTI_HOST_DEVICE std::uint32_t bytes_past(const void* address) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(address)) % kMultiple;
}

// Where an item's elements begin, and how they are reached: as a cell that is aligned, as one that need not be, or as
// one element.
enum class Access { aligned, shifted, loose };
struct Place {
  std::size_t element;
  Access access;
};

template <class F, class Task>
TUTTI_HOST_DEVICE Place place_of(const Task& task, std::size_t item) {
  if (item < task.cells) return {task.head + item * F::kElements, task.congruent ? Access::aligned : Access::shifted};
  const std::size_t loose = item - task.cells;
  return {loose < task.head ? loose : loose + task.cells * F::kElements, Access::loose};
}

// Where source `i` has the elements from `element` on, and what form they have.
template <class F>
struct SourceAt {
  const std::byte* from;
  bool partial;
};
template <class F, class Task>
TUTTI_HOST_DEVICE SourceAt<F> source_at(const Task& task, int i, std::size_t element) {
  if (F::kMixed && is_set(task.partial_sources, i)) return {task.source[i] + element * sizeof(typename F::A), true};
  return {task.source[i] + element * sizeof(typename F::T), false};
}

// An aligned cell, or one element.
template <class F, bool kLoose, class Lane>
TUTTI_HOST_DEVICE Cell load_cell(const SourceAt<F>& source, const Lane& lane) {
  constexpr int kElements = kLoose ? sizeof(typename F::T) : F::kBytes;
  constexpr int kPartials = kLoose ? sizeof(typename F::A) : 16;
  if (F::kMixed && source.partial) return lane.template load<kPartials>(source.from);
  return lane.template load<kElements>(source.from);
}

template <int kBytes, class Lane>
TUTTI_HOST_DEVICE void load_blocks(const std::byte* from, Cell& low, Cell& high, const Lane& lane) {
  const std::uint32_t past = bytes_past<kBytes>(from);
  low = lane.template load<kBytes>(from - past);
  if (past != 0) high = lane.template load<kBytes>(from - past + kBytes);
}

// Sources [first, first + size) of the task.
template <class F, class Batch, bool kLoose, class Task, class Lane>
TUTTI_HOST_DEVICE Batch load_batch(const Task& task, int first, int size, std::size_t element, const Lane& lane) {
  Batch batch{};
  TUTTI_UNROLL
  for (int i = 0; i < Batch::kSize; ++i) {
    if (i >= size) continue;
    const auto source = source_at<F>(task, first + i, element);
    batch.partial |= std::uint32_t{source.partial} << i;
    batch.cell[i] = load_cell<F, kLoose>(source, lane);
  }
  return batch;
}

// The same of cells that may lie anywhere, two sources at a time: more blocks at once would take too many registers.
template <class F, class Batch, class Task, class Lane>
TUTTI_HOST_DEVICE Batch load_shifted(const Task& task, int first, int size, std::size_t element, const Lane& lane) {
  Batch batch{};
  TUTTI_UNROLL
  for (int pair = 0; pair < Batch::kSize; pair += 2) {
    Cell high[2] = {};
    TUTTI_UNROLL
    for (int i = pair; i < pair + 2; ++i) {
      if (i >= size) continue;
      const auto source = source_at<F>(task, first + i, element);
      batch.partial |= std::uint32_t{source.partial} << i;
      if (F::kMixed && source.partial) {
        load_blocks<16>(source.from, batch.cell[i], high[i - pair], lane);
      } else {
        load_blocks<F::kBytes>(source.from, batch.cell[i], high[i - pair], lane);
      }
    }
    TUTTI_UNROLL
    for (int i = pair; i < pair + 2; ++i) {
      if (i >= size) continue;
      const auto source = source_at<F>(task, first + i, element);
      if (F::kMixed && source.partial) {
        batch.cell[i] =
            realigned<16, sizeof(typename F::A)>(batch.cell[i], high[i - pair], bytes_past<16>(source.from));
      } else {
        batch.cell[i] = realigned<F::kBytes, sizeof(typename F::T)>(batch.cell[i], high[i - pair],
                                                                    bytes_past<F::kBytes>(source.from));
      }
    }
  }
  return batch;
}

template <class F, class Batch, class Task, class Lane>
TUTTI_HOST_DEVICE Batch load_place(const Task& task, int first, int size, const Place& place, const Lane& lane) {
  switch (place.access) {
    case Access::aligned: return load_batch<F, Batch, false>(task, first, size, place.element, lane);
    case Access::shifted: return load_shifted<F, Batch>(task, first, size, place.element, lane);
    default: return load_batch<F, Batch, true>(task, first, size, place.element, lane);
  }
}

// The first kBytes of the cell in pieces of kPiece, or of less where the address is no multiple of that.
template <int kBytes, int kPiece, int kElement, class Lane>
TUTTI_HOST_DEVICE void store_pieces(std::byte* to, const Cell& cell, const Lane& lane) {
  if constexpr (kPiece > kElement) {
    if (bytes_past<kPiece>(to) != 0) return store_pieces<kBytes, kPiece / 2, kElement>(to, cell, lane);
  }
  TUTTI_UNROLL
  for (int i = 0; i < kBytes / kPiece; ++i) lane.template store<kPiece>(to + i * kPiece, piece_of<kPiece>(cell, i));
}

template <Access access, int kBytes, int kElement, class Lane>
TUTTI_HOST_DEVICE void store_cell(std::byte* to, const Cell& cell, const Lane& lane) {
  if constexpr (access == Access::loose) {
    lane.template store<kElement>(to, cell);
  } else if constexpr (access == Access::aligned) {
    lane.template store<kBytes>(to, cell);
  } else {
    store_pieces<kBytes, kBytes, kElement>(to, cell, lane);
  }
}

template <class F, Access access, class Task, class Lane>
TUTTI_HOST_DEVICE void store_values(const Task& task, const Values<F>& values, std::size_t element, const Lane& lane) {
  constexpr int kElement = sizeof(typename F::T), kPartial = sizeof(typename F::A);
  const Cell cell = narrowed<F>(values);
  TUTTI_KEEP_LOOP
  for (int t = 0; t < task.targets; ++t) {
    if constexpr (F::kMixed) {
      if (is_set(task.partial_targets, t)) {
        store_cell<access, 16, kPartial>(task.target[t] + element * kPartial, canonical_cell<F>(values), lane);
        continue;
      }
    }
    store_cell<access, F::kBytes, kElement>(task.target[t] + element * kElement, cell, lane);
  }
}

template <class F, class Task, class Lane>
TUTTI_HOST_DEVICE void store_place(const Task& task, const Values<F>& sum, const Place& place, const Lane& lane) {
  const Values<F> values = finished<F>(sum, task.leaves);
  switch (place.access) {
    case Access::aligned: return store_values<F, Access::aligned>(task, values, place.element, lane);
    case Access::shifted: return store_values<F, Access::shifted>(task, values, place.element, lane);
    default: return store_values<F, Access::loose>(task, values, place.element, lane);
  }
}

// One group of at most kSize sources.
template <class F, int kSize, class Task, class Lane>
TUTTI_HOST_DEVICE void run_group(const Task& task, const Lane& lane) {
  const int size = task.sources;
  TUTTI_KEEP_LOOP
  for (std::size_t item = lane.index(); item < task.items; item += lane.threads()) {
    const Place place = place_of<F>(task, item);
    const auto batch = load_place<F, Batch<kSize>>(task, 0, size, place, lane);
    store_place<F>(task, tree<F, 0, kSize>(batch, size), place, lane);
  }
}

// Any tree.
template <class F, class Task, class Lane>
TUTTI_HOST_DEVICE void run_groups(const Task& task, const Lane& lane) {
  TUTTI_KEEP_LOOP
  for (std::size_t item = lane.index(); item < task.items; item += lane.threads()) {
    const Place place = place_of<F>(task, item);
    Values<F> values{};
    int first = 0, waiting = 0;
    TUTTI_KEEP_LOOP
    for (int g = 0; g < task.groups; ++g) {
      if (g > 0) {
        TUTTI_UNROLL
        for (const Cell& plane : values.plane) lane.waiting(waiting++) = plane;
      }
      const Group group = task.group[g];
      values = tree<F, 0, kBatch>(load_place<F, Batch<kBatch>>(task, first, group.size, place, lane), group.size);
      first += group.size;
      TUTTI_KEEP_LOOP
      for (int joins = group.joins; joins > 0; --joins) {
        Values<F> left;
        waiting -= F::kPlanes;
        TUTTI_UNROLL
        for (int p = 0; p < F::kPlanes; ++p) left.plane[p] = lane.waiting(waiting + p);
        values = combined<F>(left, values);
      }
    }
    store_place<F>(task, values, place, lane);
  }
}

}  // namespace tutti::internal::cuda
