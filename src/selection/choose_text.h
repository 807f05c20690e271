// A table as text, and what names it. The first line says what this is, and the version of the form; # begins a
// comment.
//
//   tutti table 1
//   shm    4K 1.2 0.8     a message of 4 KiB between ranks that share memory: us until it has arrived, us that it keeps
//                         each end busy
//   tcp    4K 18 9.5      the same by TCP
//   reduce 4K 0.3         us to combine sources of 4 KiB together
//   cores  2              of a host; 0: as many as ranks
//   switch shm 1.5        us of a core from one rank that waits for such a message to another, where ranks share it
//   rule   all_reduce 8 one 2K canonical one_shot *
//                         collective, at most so many ranks, on one host, several, or several with
//                         fewer hosts than ranks (shared), of at most so many bytes, order,
//                         algorithm, bytes of a chunk. The first rule that holds decides
//
// Sizes take K, M and G, powers of 1024. * is any number of ranks, hosts or bytes, and of a chunk the algorithm's
// default. The sizes of one kind ascend. Everything but the first line may be missing: parameters are then the built-in
// ones, and so are the rules where none of these holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "selection/choose.h"

namespace tutti::internal {

inline constexpr std::size_t kMaxTableBytes = 64 << 10;  // it travels to every rank

// Throws Error{invalid_argument}: "<name>, line 7: <what is wrong, and what should be there>".
ChoiceTable parse_table(std::string_view text, const std::string& name);

// parse_table(to_text(table)) == table.
std::string to_text(const ChoiceTable& table);
std::string to_text(const Rule& rule);  // one line, without its end

// Equal tables have equal hashes, on every machine: FNV-1a over to_text.
std::uint64_t hash_of(const ChoiceTable& table);

// "4K"; the shortest form that is exact.
std::string size_text(std::size_t bytes);

// What the file holds. Throws Error{invalid_argument} that names it: it cannot be read, is no regular file, is too
// large.
std::string read_table_file(const std::string& path);

}  // namespace tutti::internal
