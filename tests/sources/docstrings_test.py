#!/usr/bin/python3
"""What docstrings.py finds: in a header that is as it should be, and when one statement of it, or of ours, is missing.

docstrings_test.py SOURCE_DIR
"""
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
from docstrings import Headers, exported

HEADER = """\
/// @file
/// A header.
#pragma once
namespace tutti {
/// A group.
///
/// **Threads.** One thread at a time.
///
/// **Blocking.** A call blocks.
///
/// **Errors during the call.** Every Error{mismatch} is final.
class Group {
 public:
  Group();  ///< of one rank
  /// How many ranks there are.
  int size() const { return size_; }

  /// out[0, count) = in[0, count) of all. `count` counts elements. In place: out == in.
  TUTTI_API void sum(ConstBuffer in, Buffer out, std::size_t count,
                     const CallOptions& options = {});

  /// @name Started
  /// The same calls; these return at once.
  /// @{
  /// *Not* over when it returns.
  TUTTI_API Work start_sum(ConstBuffer in, Buffer out, std::size_t count, const CallOptions& options = {});
  TUTTI_API Work start_sum(std::span<float> values, const CallOptions& options = {});
  /// @}

  /// Uses data[0, bytes) for `limit`. Does not block.
  TUTTI_API void use(void* data, std::size_t bytes, std::chrono::milliseconds limit);
  void undocumented_and_deleted() = delete;
  enum class Kind { a, b };  ///< a kind
 private:
  void not_public();
  int size_ = 1;
};
/// Frees what the library keeps. Blocks. Thread-safe. Throws Error{system}; nothing has changed then.
TUTTI_API void clear();
namespace internal {
void not_of_users();
}
}  // namespace tutti
"""
WHOLE = HEADER.replace("  TUTTI_API Work start_sum(std::span<float> values, const CallOptions& options = {});\n", "")


def wrong_in(text):
    return Headers({"header.h": text}).check()


class Docstrings(unittest.TestCase):
    def test_finds_nothing_where_all_is_said(self):
        self.assertEqual(wrong_in(WHOLE), [])
        names = [f"{f.scope}::{f.name}" for f in Headers({"header.h": WHOLE}).functions]
        self.assertEqual(names, ["Group::Group", "Group::size", "Group::sum", "Group::start_sum", "Group::use",
                                 "::clear"])

    def test_names_the_function_and_what_is_missing(self):
        for damage, statement in {
            ("  Group();  ///< of one rank", "  Group();"): "Group::Group() does not say what it does",
            ("  /// How many ranks there are.\n", ""): "Group::size() does not say what it does",
            ("out[0, count) = in", "The result = in"): "Group::sum() does not say shapes: of out",
            ("= in[0, count) of all", "= those of all"): "Group::sum() does not say shapes: of in",
            ("`count` counts elements. ", ""): "Group::sum() does not say units: of count",
            (" In place: out == in.", ""): "Group::sum() does not say aliasing",
            ("/// **Blocking.** A call blocks.\n", ""): "Group::sum() does not say whether it blocks",
            ("**Blocking.**", "Blocking."): "Group::sum() does not say whether it blocks",
            ("/// **Threads.** One thread at a time.\n", ""): "Group::use() does not say threads",
            ("**Errors during the call.**", "**Failures.**"): "Group::sum() does not say errors",
            ("{mismatch} is final", "{mismatch} is bad"): "Group::use() does not say the state after an error",
            ("Uses data[0, bytes) for", "Uses data for"): "Group::use() does not say shapes: of data",
            ("`limit`. Does not block.", "`limit`."): "Group::use() does not say whether it blocks",
            ("Blocks. Thread-safe.", "Blocks."): "clear() does not say threads",
            ("Blocks. Thread-safe.", "Thread-safe."): "clear() does not say whether it blocks",
            ("Throws Error{system}; ", ""): "clear() does not say errors",
            ("; nothing has changed then", ""): "clear() does not say the state after an error",
            ("The same calls", "As total(). The calls"): "Group::start_sum() refers to total(), which does not exist",
            ("The same calls; ", ""): "Group::start_sum() does not say shapes: of in",
        }.items():
            self.assertIn(damage[0], WHOLE)
            wrong = wrong_in(WHOLE.replace(*damage))
            self.assertTrue(any(line.endswith(statement) for line in wrong), f"{damage}: {wrong}")

    def test_a_function_of_a_group_shares_what_stands_above_the_one_before(self):
        self.assertEqual([line.split(": ", 1)[1] for line in wrong_in(HEADER)],
                         ["Group::start_sum() does not say shapes: of values"])

    def test_finds_what_is_missing_in_our_headers(self):
        ours = {path.name: path.read_text() for path in (SOURCES / "include/tutti").glob("*.h")}
        self.assertEqual(Headers(ours).check(), [])
        for header, text, statement in (
            ("communicator.h", " In place: out == in.\n", "Communicator::start_all_reduce() does not say aliasing"),
            ("tutti.h", " In place: recvbuff ==\n", "tutti_start_all_reduce() does not say aliasing"),
            ("communicator.h", "Row r of `out` on rank `root` = in[0, count) of rank r.",
             "Communicator::start_gather_v() does not say shapes: of in"),
            ("communicator.h", "In place, on the root: in == out +\n",
             "Communicator::gather_v() does not say aliasing"),
            ("communicator.h", "**Errors during the call.**", "tutti.h refers to the paragraph Errors during the call"),
            ("communicator.h", "**Threads.**", "tutti_all_reduce() does not say threads"),
            ("communicator.h", "**Waiting.**", "tutti.h refers to the paragraph Waiting of Communicator"),
            ("tutti.h", "**Results.**", "tutti_get_unique_id() does not say the state after an error"),
            ("tutti.h", "counts[r] elements at displs[r]",
             "tutti_start_all_to_all_v() does not say shapes: of rdispls"),
            ("tutti_types.h", "**Threads.**", "tutti_work_wait() does not say threads"),
            ("work.h", "Does not block itself. ", "Work::on_complete() does not say whether it blocks"),
        ):
            self.assertIn(text, ours[header])
            damaged = ours[header].replace(text, "\n" * text.count("\n"))
            wrong = Headers(ours | {header: damaged}).check()
            self.assertTrue(any(statement in line for line in wrong), f"{text}: {wrong}")

    def test_reads_the_list_of_what_is_exported(self):
        self.assertEqual(exported(["tutti::A::f(int)", "tutti::g()", "tutti_h", "vtable for tutti::A",
                                   "tutti::A::~A()", "tutti::A::operator=(tutti::A&&)"]),
                         {"A::f", "g", "tutti_h", "A::~A"})


SOURCES = Path(sys.argv.pop(1))
unittest.main()
