#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <limits>
#include <map>

#include "schedule/claimed_messages.h"
#include "schedule/text.h"
#include "tutti/error.h"

namespace tutti::internal {
namespace {

// One line, read token by token: words, numbers and single punctuation marks.
class Line {
 public:
  Line(std::string_view text, int number) : text_(text.substr(0, text.find('#'))), number_(number) { next(); }

  bool empty() const { return token_.empty(); }
  bool sees(std::string_view word) const { return token_ == word; }
  bool take(std::string_view word) {
    if (!sees(word)) return false;
    next();
    return true;
  }
  void expect(std::string_view word) {
    if (!take(word)) fail(fmt::format("'{}'", word));
  }
  void expect_counted(std::string_view thing) {  // "chunk" or "chunks"
    if (!take(thing)) expect(fmt::format("{}s", thing));
  }
  template <class T = int>
  T number() {
    T value = 0;
    const auto [end, error] = std::from_chars(token_.data(), token_.data() + token_.size(), value);
    if (error != std::errc() || end != token_.data() + token_.size())
      fail(fmt::format("a number up to {}", std::numeric_limits<T>::max()));
    next();
    return value;
  }
  [[noreturn]] void fail(const std::string& expected) const {
    throw Error(ErrorCode::invalid_argument, fmt::format("line {}: expected {}, found {}", number_, expected,
                                                         empty() ? "its end" : fmt::format("'{}'", token_)));
  }

 private:
  void next() {
    while (!text_.empty() && std::isspace(static_cast<unsigned char>(text_.front()))) text_.remove_prefix(1);
    std::size_t size = 0;
    while (size < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[size])) || text_[size] == '_')) ++size;
    if (size == 0 && !text_.empty()) size = 1;
    token_ = text_.substr(0, size);
    text_.remove_prefix(size);
  }

  std::string_view text_, token_;
  int number_;
};

constexpr std::size_t kMostRows = std::numeric_limits<decltype(Step::part_count)>::max();  // of a message

// Behind the first: ", 7" and "-9".
void parse_further_slices(Line& line, std::uint32_t last, std::vector<std::uint32_t>& slices) {
  const std::size_t begin = slices.size();
  const auto add = [&](std::uint32_t slice) {
    if (slices.size() - begin == kMostRows) line.fail(fmt::format("no more than {} rows", kMostRows));
    slices.push_back(last = slice);
  };
  while (!line.sees("chunk")) {
    if (line.take("-")) {
      for (const auto end = line.number<std::uint32_t>(); last < end;) add(last + 1);
    } else {
      line.expect(",");
      add(line.number<std::uint32_t>());
    }
  }
}

// further: where the slices of more rows go, if there may be some.
void parse_part(Line& line, Region& region, std::vector<std::uint32_t>* further = nullptr) {
  line.expect("[");
  if (line.take("row")) region.row = line.number<std::uint16_t>();
  line.expect("slice");
  region.slice = line.number<std::uint32_t>();
  if (further != nullptr) parse_further_slices(line, region.slice, *further);
  line.expect("chunk");
  region.chunk = line.number<std::uint16_t>();
  line.expect("]");
}

// False where the line goes on with something else.
bool parse_region(Line& line, Region& region, std::vector<std::uint32_t>* further = nullptr) {
  if (line.take("input")) {
    region.space = Space::input;
  } else if (line.take("output")) {
    region.space = Space::output;
  } else if (line.take("scratch")) {
    region.space = Space::scratch;
  } else if (line.take("relay")) {
    region.space = Space::relay;
  } else {
    return false;
  }
  parse_part(line, region, further);
  return true;
}

void parse_extent(Line& line, Step& step, std::vector<std::uint32_t>& further) {
  const std::size_t begin = further.size();
  if (!parse_region(line, step.region, &further)) line.fail("a region");
  step.part_count = static_cast<std::uint16_t>(further.size() - begin);
  step.first_part = static_cast<std::uint32_t>(step.part_count > 0 ? begin : 0);
}

Source parse_source(Line& line, const Region& to) {
  Source source;
  if (parse_region(line, source.region)) {
    source.partial = source.region.space == Space::scratch;
    return source;
  }
  source.partial = line.take("partial");
  if (!line.take("from")) line.fail("a source");
  source.peer = line.number();
  source.region = {.slice = to.slice, .chunk = to.chunk};
  if (line.sees("[")) parse_part(line, source.region);
  return source;
}

void parse_tree(Line& line, const Region& to, std::vector<Source>& sources);

void parse_operand(Line& line, const Region& to, std::vector<Source>& sources) {
  if (line.take("(")) {
    parse_tree(line, to, sources);
    line.expect(")");
  } else {
    sources.push_back(parse_source(line, to));
  }
}

void parse_tree(Line& line, const Region& to, std::vector<Source>& sources) {
  parse_operand(line, to, sources);
  if (!line.take("+")) return;
  parse_operand(line, to, sources);
  ++sources.back().joins;
}

Step parse_reduce(Line& line, std::vector<Source>& sources) {
  Step step{.kind = StepKind::reduce, .first_part = static_cast<std::uint32_t>(sources.size())};
  if (!parse_region(line, step.region)) line.fail("a step");
  line.expect("=");
  step.finish = line.take("finish");
  if (step.finish) line.expect("(");
  parse_tree(line, step.region, sources);
  if (step.finish) line.expect(")");
  step.part_count = static_cast<std::uint16_t>(sources.size() - step.first_part);
  return step;
}

using Claims = std::map<int, ClaimedMessages>;  // by peer; as in text.cc

void claim_messages(const Step& step, std::span<const Source> sources, Claims& claims) {
  if (step.kind == StepKind::receive) claims[step.peer].claim(step.message);
  if (step.kind != StepKind::reduce) return;
  for (const Source& source : sources.subspan(step.first_part))
    if (source.peer != kLocal) claims[source.peer].claim_first();
}

Step parse_step(Line& line, Schedule& schedule, const Claims& claims) {
  Step step;
  if (line.take("send")) {
    step.kind = StepKind::send;
    parse_extent(line, step, schedule.further_slices);
    line.expect("to");
  } else if (line.take("receive")) {
    step.kind = StepKind::receive;
    parse_extent(line, step, schedule.further_slices);
    line.expect("from");
  } else if (line.take("wait_send")) {
    step.kind = StepKind::wait_send;
    step.message = line.number<std::uint32_t>();
    line.expect("to");
  } else if (line.take("wait_receive")) {
    step.kind = StepKind::wait_receive;
    step.message = line.number<std::uint32_t>();
    line.expect("from");
  } else {
    return parse_reduce(line, schedule.sources);
  }
  step.peer = line.number();
  if (step.kind == StepKind::receive) {
    const auto known = claims.find(step.peer);
    step.message = known == claims.end() ? 0 : known->second.first_unclaimed();
    if (line.take(",")) {
      line.expect("message");
      step.message = line.number<std::uint32_t>();
    }
  }
  return step;
}

// After "rank".
Schedule parse_header(Line& line) {
  Schedule schedule;
  schedule.rank = line.number();
  line.expect("of");
  line.number();
  line.expect(":");
  schedule.slices = line.number();
  schedule.exact_slices = line.take("exact");
  line.expect_counted("slice");
  line.expect("x");
  schedule.chunks = line.number();
  line.expect_counted("chunk");
  line.expect(",");
  schedule.scratch_rows = line.number();
  line.expect("scratch");
  line.expect_counted("row");
  return schedule;
}

}  // namespace

std::vector<Schedule> parse_schedules(std::string_view text) {
  std::vector<Schedule> schedules;
  Claims claims;  // of the last of them
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    Line line(text.substr(0, end), number);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    if (line.take("rank")) {
      schedules.push_back(parse_header(line));
      claims.clear();
    } else if (schedules.empty()) {
      line.fail("'rank'");
    } else {
      Schedule& schedule = schedules.back();
      schedule.steps.push_back(parse_step(line, schedule, claims));
      claim_messages(schedule.steps.back(), schedule.sources, claims);
    }
    if (!line.empty()) line.fail("nothing more");
  }
  return schedules;
}

}  // namespace tutti::internal
