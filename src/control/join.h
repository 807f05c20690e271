// Joining, as two sans-I/O state machines: the registrar (rank 0) gathers what every rank says of itself; a joiner says
// it and waits for the table of all. Either everyone ends with the same table, or everyone who has come is told the
// same refusal.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/message.h"

namespace tutti::internal {

class Registrar {
 public:
  // `own` is rank 0's introduction, which the others must agree with. 0 <= own.member.rank == 0 < own.size.
  explicit Registrar(const Introduction& own);

  // Takes one more rank in. A refusal ends the whole join: tell it to everyone.
  std::optional<Refusal> admit(const Introduction& introduction);

  // A rank of another attempt of this job is told this, and it alone: it does the join no harm. A rank of a later one
  // is to try again.
  std::optional<Refusal> other_attempt(const Introduction& introduction) const;

  // A rank that had been admitted is gone (why: "connection reset by peer") before the table was sent.
  Refusal gone(int rank, const std::string& why) const;

  // The join's time is over.
  Refusal overdue(std::chrono::milliseconds waited) const;

  bool complete() const { return static_cast<int>(members_.size()) == own_.size; }
  std::string missing() const;          // "rank 2", "ranks 1, 3 and 5", the first few of many
  std::vector<Member> members() const;  // in the order of ranks

 private:
  std::optional<std::string> objection(const Introduction& introduction) const;

  Introduction own_;
  std::map<int, Member> members_;
};

class Joiner {
 public:
  Joiner(int rank, int size) : rank_(rank), size_(size) {}

  void received(const ControlMessage& message);
  void closed(const std::string& why);  // the connection to rank 0

  const std::optional<Table>& table() const { return table_; }
  const std::optional<Error>& error() const { return error_; }
  // Not empty: this rank 0 is of an earlier attempt, or may be, as it hung up without a word; why. Connect again, with
  // another Joiner.
  const std::string& try_again() const { return try_again_; }
  Error overdue(std::chrono::milliseconds waited) const;

 private:
  void fail(ErrorCode code, int peer, const std::string& message);

  int rank_;
  int size_;
  bool admitted_ = false;  // rank 0 has said something
  std::string missing_, try_again_;
  std::optional<Table> table_;
  std::optional<Error> error_;
};

// "rank 2: could not join: ...", the form of every error that ends a join.
Error join_error(ErrorCode code, int rank, int peer, const std::string& message);

// " is outside 0..1, the job having 2 ranks"
std::string outside(int size);

}  // namespace tutti::internal
