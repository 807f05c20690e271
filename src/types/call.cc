#include "types/call.h"

#include "tutti/error.h"
#include "types/collective.h"
#include "types/kinds.h"

namespace tutti::internal {
namespace {

constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 48;

// A caller's number may be no enumerator: what is looked up by it would lie beside the table.
template <class Enum>
void check_named(const std::string& what, const std::string& kind, Enum value) {
  if (to_string(value) == kNoName)
    throw Error(ErrorCode::invalid_argument,
                what + ": there is no " + kind + " " + std::to_string(static_cast<int>(value)) + " (tutti/types.h)");
}

constexpr std::uint64_t bits(std::uint64_t value, int count, int shift) {
  return (value & ((std::uint64_t{1} << count) - 1)) << shift;
}
constexpr std::uint64_t field(std::uint64_t word, int count, int shift) {
  return (word >> shift) & ((std::uint64_t{1} << count) - 1);
}

template <class Enum>
std::uint64_t number(Enum value) {
  return static_cast<std::uint64_t>(value);
}

}  // namespace

void check(const CallSpec& spec, int ranks) {
  check_named("a call", "collective", spec.collective);
  const std::string what(to_string(spec.collective));
  check_named(what, "element type", spec.dtype);
  check_named(what, "operator", spec.op);
  if (traits_of(spec.collective).combines()) check_combines(what, spec.dtype, spec.op);
  check_named(what, "order", spec.order);
  check_named(what, "algorithm", spec.algorithm);
  const bool in_all = spec.flags == kUnequalRows;
  if (spec.count >= kMaxElements / static_cast<std::uint64_t>(in_all ? 1 : ranks))
    throw Error(ErrorCode::invalid_argument,
                what + ": a count of " + std::to_string(spec.count) +
                    " is too large: there must be fewer than 2^48 elements over all ranks");
  if (spec.root < 0 || spec.root >= ranks)
    throw Error(ErrorCode::invalid_argument,
                what + ": root " + std::to_string(spec.root) + " is not a rank; there are " + std::to_string(ranks));
}

Tag Call::pack() const {
  Tag tag;
  tag.word[0] = bits(sequence, 32, 32) | bits(number(collective), 5, 27) | bits(number(dtype), 5, 22) |
                bits(number(op), 4, 18) | bits(number(order), 2, 16) | bits(number(algorithm), 8, 8) | flags;
  tag.word[1] = bits(count, 48, 16) | root;
  return tag;
}

Call Call::unpack(const Tag& tag) {
  const std::uint64_t word = tag.word[0];
  Call call;
  call.sequence = static_cast<std::uint32_t>(word >> 32);
  call.collective = static_cast<Collective>(field(word, 5, 27));
  call.dtype = static_cast<DType>(field(word, 5, 22));
  call.op = static_cast<Op>(field(word, 4, 18));
  call.order = static_cast<Order>(field(word, 2, 16));
  call.algorithm = static_cast<Algorithm>(field(word, 8, 8));
  call.flags = static_cast<std::uint8_t>(field(word, 8, 0));
  call.count = tag.word[1] >> 16;
  if (call.flags == kFusedCalls) call.count &= kFusedCountMask;
  call.root = call.flags == kFusedCalls ? std::uint16_t{0} : static_cast<std::uint16_t>(field(tag.word[1], 16, 0));
  return call;
}

namespace {

std::string in_words(const Call& call, const std::string& number) {
  const CollectiveTraits& traits = traits_of(call.collective);
  if (call.flags == kSplit) return "split" + number;
  if (call.flags == kAllocate) return "allocate" + number + " (" + std::to_string(call.count) + " bytes)";
  if (call.flags == kMakeOperator) return "make_operator" + number;

  std::string details;
  const auto add = [&](const std::string& detail) { details += (details.empty() ? "" : ", ") + detail; };
  const bool unequal = call.flags == kUnequalRows;
  if (traits.has_bytes())
    add(std::string(to_string(call.dtype)) +
        (unequal && !traits.shows_all_rows() ? "" : " x " + std::to_string(call.count) + (unequal ? " in all" : "")));
  if (traits.combines()) add(std::string(to_string(call.op)));
  if (call.op == Op::custom) details.append(" ").append(std::to_string(call.flags - kFirstCustomCall + 1));
  if (traits.has_root()) add("root " + std::to_string(call.root));
  if (call.collective == Collective::transfer && call.root != 0) add("tag " + std::to_string(call.root));
  if (call.flags == kFusedCalls) add("several calls of one group");
  if (call.algorithm != Algorithm::automatic && call.collective != Collective::transfer)
    add(std::string(to_string(call.algorithm)));
  if (call.order != Order::canonical) add("order " + std::string(to_string(call.order)));
  return std::string(to_string(call.collective)) + (unequal ? "_v" : "") + number +
         (details.empty() ? "" : " (" + details + ")");
}

}  // namespace

std::string describe(const Call& call) {
  return call.sequence == 0 ? "no call" : in_words(call, " #" + std::to_string(call.sequence));
}

std::string describe_kind(const Call& call) { return in_words(call, ""); }

}  // namespace tutti::internal
