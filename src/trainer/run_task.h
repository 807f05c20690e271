// What one thread does of a task. The CPU is one thread, a GPU many; each element's arithmetic is the same wherever it
// runs, and no element is combined from what several threads made: so the bits are the same (but those of tanh, of
// which CUDA has its own).
//
// A Thread is its place among the others, and all memory that it touches:
//   index(), threads()   this thread's number, and how many there are
//   load(from), store(to, value)
#pragma once

#include <cmath>

#include "trainer/task.h"

#ifdef __CUDACC__
#define TUTTI_ON_BOTH __host__ __device__
#else
#define TUTTI_ON_BOTH
#endif

namespace tutti::trainer {

// One thread's part of: out[i] = value(i).
template <class Thread, class Value>
TUTTI_ON_BOTH void set_each(const Task& task, const Thread& thread, const Value& value) {
  for (std::size_t i = thread.index(); i < task.count; i += thread.threads()) thread.store(task.out + i, value(i));
}

// The same of: out[i] += value(i).
template <class Thread, class Value>
TUTTI_ON_BOTH void add_to_each(const Task& task, const Thread& thread, const Value& value) {
  for (std::size_t i = thread.index(); i < task.count; i += thread.threads())
    thread.store(task.out + i, thread.load(task.out + i) + value(i));
}

// out[0, task.inner) = the polynomials of the basis at t.
template <class Thread>
TUTTI_ON_BOTH void run_basis(const Task& task, const Thread& thread) {
  for (std::size_t r = thread.index(); r < task.count; r += thread.threads()) {
    const double t = (thread.load(task.a + r) - task.scalar) / task.scalar2;
    double* const row = task.out + r * task.inner;
    double before = 0, last = 1;
    thread.store(row, last);
    for (std::size_t k = 1; k < task.inner; ++k) {
      const double next = task.step == Step::monomial || k == 1 ? t * last : 2 * t * last - before;
      before = last;
      last = next;
      thread.store(row + k, next);
    }
  }
}

template <class Thread>
TUTTI_ON_BOTH double element_of_matmul(const Task& task, const Thread& thread, std::size_t i) {
  const double* const row = task.a + i / task.cols * task.inner;
  const double* const col = task.b + i % task.cols;
  double total = 0;
  for (std::size_t k = 0; k < task.inner; ++k) total += thread.load(row + k) * thread.load(col + k * task.cols);
  return total;
}

template <class Thread>
TUTTI_ON_BOTH double element_of_matmul_gradient(const Task& task, const Thread& thread, std::size_t i) {
  const double* const a = task.a + i / task.inner * task.cols;
  const double* const b = task.b + i % task.inner * task.cols;
  double total = 0;
  for (std::size_t j = 0; j < task.cols; ++j) total += thread.load(a + j) * thread.load(b + j);
  return total;
}

// The rows of group g are [first, last).
TUTTI_ON_BOTH inline std::size_t last_of_group(const Task& task, std::size_t first) {
  return first + kRowsOfGroup < task.rows ? first + kRowsOfGroup : task.rows;
}

template <class Thread>
TUTTI_ON_BOTH double element_of_row_sums(const Task& task, const Thread& thread, std::size_t i) {
  const std::size_t first = i / task.cols * kRowsOfGroup, last = last_of_group(task, first);
  double total = 0;
  for (std::size_t r = first; r < last; ++r) total += thread.load(task.a + r * task.cols + i % task.cols);
  return total;
}

template <class Thread>
TUTTI_ON_BOTH double element_of_product_sums(const Task& task, const Thread& thread, std::size_t i) {
  const std::size_t first = i / task.cols / task.inner * kRowsOfGroup, last = last_of_group(task, first);
  const double* const a = task.a + i / task.cols % task.inner;
  const double* const b = task.b + i % task.cols;
  double total = 0;
  for (std::size_t r = first; r < last; ++r) total += thread.load(a + r * task.inner) * thread.load(b + r * task.cols);
  return total;
}

template <class Thread>
TUTTI_ON_BOTH void run_gradient(const Task& task, const Thread& thread) {
  const auto a = [&](std::size_t i) { return thread.load(task.a + i); };
  const auto b = [&](std::size_t i) { return thread.load(task.b + i); };
  switch (task.step) {
    case Step::increase: return add_to_each(task, thread, [&](std::size_t) { return task.scalar; });
    case Step::increase_by_first: return add_to_each(task, thread, [&](std::size_t) { return a(0); });
    case Step::add_scaled: return add_to_each(task, thread, [&](std::size_t i) { return task.scalar * a(i); });
    case Step::add_product: return add_to_each(task, thread, [&](std::size_t i) { return a(i) * b(i); });
    case Step::square_gradient: return add_to_each(task, thread, [&](std::size_t i) { return 2 * a(i) * b(i); });
    case Step::relu_gradient:
      return add_to_each(task, thread, [&](std::size_t i) { return (a(i) > 0 ? 1.0 : 0.0) * b(i); });
    case Step::tanh_gradient: return add_to_each(task, thread, [&](std::size_t i) { return (1 - a(i) * a(i)) * b(i); });
    default:
      return add_to_each(task, thread, [&](std::size_t i) { return element_of_matmul_gradient(task, thread, i); });
  }
}

template <class Thread>
TUTTI_ON_BOTH void run_task(const Task& task, const Thread& thread) {
  const auto a = [&](std::size_t i) { return thread.load(task.a + i); };
  const auto b = [&](std::size_t i) { return thread.load(task.b + i); };
  switch (task.step) {
    case Step::fill: return set_each(task, thread, [&](std::size_t) { return task.scalar; });
    case Step::copy: return set_each(task, thread, a);
    case Step::add: return set_each(task, thread, [&](std::size_t i) { return a(i) + b(i); });
    case Step::add_row: return set_each(task, thread, [&](std::size_t i) { return a(i) + b(i % task.cols); });
    case Step::sub: return set_each(task, thread, [&](std::size_t i) { return a(i) - b(i); });
    case Step::mul: return set_each(task, thread, [&](std::size_t i) { return a(i) * b(i); });
    case Step::scale: return set_each(task, thread, [&](std::size_t i) { return task.scalar * a(i); });
    case Step::square: return set_each(task, thread, [&](std::size_t i) { return a(i) * a(i); });
    case Step::relu: return set_each(task, thread, [&](std::size_t i) { return a(i) > 0 ? a(i) : 0.0; });
    case Step::tanh: return set_each(task, thread, [&](std::size_t i) { return ::tanh(a(i)); });
    case Step::matmul: return set_each(task, thread, [&](std::size_t i) { return element_of_matmul(task, thread, i); });
    case Step::chebyshev:
    case Step::monomial: return run_basis(task, thread);
    case Step::sum_rows:
      return set_each(task, thread, [&](std::size_t i) { return element_of_row_sums(task, thread, i); });
    case Step::sum_products:
      return set_each(task, thread, [&](std::size_t i) { return element_of_product_sums(task, thread, i); });
    default: return run_gradient(task, thread);
  }
}

}  // namespace tutti::trainer
