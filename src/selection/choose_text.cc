#include "selection/choose_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "collectives/catalogue.h"
#include "tutti/error.h"

namespace tutti::internal {
namespace {

constexpr std::array<std::string_view, 4> kHostWords{"*", "one", "several", "shared"};  // by HostCount

constexpr std::string_view kFirstWords = "tutti table";
constexpr int kVersion = 1;
constexpr double kMaxUs = 1e12;
constexpr std::size_t kMaxPointBytes = std::size_t{1} << 50;  // exact as a double
constexpr int kMaxCores = 1 << 20;

std::vector<std::string_view> words_of(std::string_view line) {
  line = line.substr(0, line.find('#'));
  std::vector<std::string_view> words;
  constexpr std::string_view kBlank = " \t\r";
  for (std::size_t at = 0; (at = line.find_first_not_of(kBlank, at)) != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(kBlank, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

template <class T>
std::optional<T> number(std::string_view word) {
  T value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size()) return std::nullopt;
  return value;
}

class Parser {
 public:
  explicit Parser(const std::string& name) : name_(name) {}

  void take(std::string_view line) {
    ++line_;
    words_ = words_of(line);
    if (words_.empty()) return;
    if (!versioned_) return first_words();
    const std::string_view kind = words_[0];
    if (kind == "rule") return rule();
    if (kind == "shm" || kind == "tcp") {
      expect(4, "bytes, us until the message has arrived, us that each end is busy");
      LinkCost& link = kind == "shm" ? table_.model.local : table_.model.remote;
      add_point(link.arrival, words_[2], kind == "shm" ? shm_ : tcp_);
      add_point(link.busy, words_[3], kind == "shm" ? shm_busy_ : tcp_busy_);
    } else if (kind == "reduce") {
      expect(3, "bytes, us");
      add_point(table_.model.reduce, words_[2], reduce_);
    } else if (kind == "cores") {
      expect(2, "how many cores a host has");
      const auto cores = number<int>(words_[1]);
      if (!cores || *cores < 0 || *cores > kMaxCores) fail(fmt::format("{} is no number of cores", words_[1]));
      table_.model.cores = *cores;
    } else if (kind == "switch") {
      expect(3, "shm or tcp, us");
      if (words_[1] != "shm" && words_[1] != "tcp") fail(fmt::format("{} is not shm or tcp", words_[1]));
      (words_[1] == "shm" ? table_.model.local : table_.model.remote).switch_us = us(words_[2]);
    } else {
      fail(fmt::format("{} is not one of shm, tcp, reduce, cores, switch and rule", kind));
    }
  }

  ChoiceTable finish() {
    if (!versioned_) fail(fmt::format("it should begin with \"{} {}\"", kFirstWords, kVersion));
    return std::move(table_);
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}, line {}: {}", name_, std::max(line_, 1), what));
  }

 private:
  void first_words() {
    if (words_.size() != 3 || fmt::format("{} {}", words_[0], words_[1]) != kFirstWords)
      fail(fmt::format("it should begin with \"{} {}\"", kFirstWords, kVersion));
    if (words_[2] != std::to_string(kVersion))
      fail(fmt::format("version {} of the form is not known here; {} is", words_[2], kVersion));
    versioned_ = true;
  }

  void expect(std::size_t words, std::string_view what) const {
    if (words_.size() != words)
      fail(fmt::format("{} takes {} words ({}); here are {}", words_[0], words - 1, what, words_.size() - 1));
  }

  double us(std::string_view word) const {
    const auto value = number<double>(word);
    if (!value || !(*value >= 0 && *value <= kMaxUs)) fail(fmt::format("{} is no number of microseconds", word));
    return *value;
  }

  std::size_t size(std::string_view word) const {
    std::string_view digits = word;
    int shift = 0;
    if (!word.empty())
      for (const auto& [letter, power] : {std::pair{'K', 10}, {'M', 20}, {'G', 30}})
        if (word.back() == letter) shift = power;
    if (shift > 0) digits.remove_suffix(1);
    const auto value = number<std::size_t>(digits);
    if (!value || *value > (kAnyBytes >> shift)) fail(fmt::format("{} is no number of bytes; 8, 4K and 1M are", word));
    return *value << shift;
  }

  // The first point that a table gives replaces the built-in curve.
  void add_point(CostCurve& curve, std::string_view word, bool& given) const {
    if (!given) curve.points.clear();
    given = true;
    const std::size_t whole = size(words_[1]);
    if (whole > kMaxPointBytes) fail(fmt::format("{} bytes are more than a message has", words_[1]));
    const auto bytes = static_cast<double>(whole);
    if (!curve.points.empty() && curve.points.back().bytes >= bytes)
      fail(fmt::format("{} bytes are not more than the {} of the point before", words_[1], curve.points.back().bytes));
    curve.points.push_back({bytes, us(word)});
  }

  void rule() {
    expect(8, "collective, ranks, hosts, bytes, order, algorithm, bytes of a chunk");
    Rule rule;
    const auto collective = parse_collective(words_[1]);
    if (!collective) fail(fmt::format("there is no collective {}", words_[1]));
    rule.collective = *collective;
    if (words_[2] != "*") {
      const auto ranks = number<int>(words_[2]);
      if (!ranks || *ranks < 1) fail(fmt::format("{} is no number of ranks; 8 is, and * for any", words_[2]));
      rule.max_ranks = *ranks;
    }
    const auto hosts = std::ranges::find(kHostWords, words_[3]);
    if (hosts == kHostWords.end())
      fail(fmt::format("the hosts are {} but should be one, several, shared or *", words_[3]));
    rule.hosts = static_cast<HostCount>(hosts - kHostWords.begin());
    if (words_[4] != "*") rule.max_bytes = size(words_[4]);
    const auto order = parse_order(words_[5]);
    if (!order) fail(fmt::format("the order is {} but should be canonical or any", words_[5]));
    rule.order = *order;
    set_algorithm(rule, words_[6]);
    if (words_[7] != "*") {
      rule.chunk_bytes = size(words_[7]);
      if (rule.chunk_bytes == 0) fail("a chunk has at least one byte");
    }
    table_.rules.push_back(rule);
  }

  // A rule must not let a choice change a result.
  void set_algorithm(Rule& rule, std::string_view name) const {
    const auto algorithm = parse_algorithm(name);
    const AlgorithmEntry* entry = algorithm ? find_algorithm(rule.collective, *algorithm) : nullptr;
    if (entry == nullptr) fail(fmt::format("there is no {} by {}", to_string(rule.collective), name));
    if (!entry->canonical && rule.order == Order::canonical && rule.max_ranks > 2)
      fail(fmt::format("{} cannot keep the canonical order on more than 2 ranks: its rule's order must be any", name));
    rule.algorithm = *algorithm;
  }

  const std::string& name_;
  int line_ = 0;
  bool versioned_ = false;
  bool shm_ = false, shm_busy_ = false, tcp_ = false, tcp_busy_ = false, reduce_ = false;
  std::vector<std::string_view> words_;
  ChoiceTable table_;
};

void print_link(std::string& text, std::string_view kind, const LinkCost& link) {
  for (std::size_t i = 0; i < link.arrival.points.size(); ++i) {
    const auto& [bytes, us] = link.arrival.points[i];
    text += fmt::format("{:<7} {:>5} {} {}\n", kind, size_text(static_cast<std::size_t>(bytes)), us,
                        link.busy.points[i].us);
  }
}

std::string or_any(bool any, const std::string& text) { return any ? "*" : text; }

}  // namespace

ChoiceTable parse_table(std::string_view text, const std::string& name) {
  Parser parser(name);
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    parser.take(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return parser.finish();
}

std::string size_text(std::size_t bytes) {
  for (const auto& [shift, letter] : {std::pair{30, "G"}, {20, "M"}, {10, "K"}})
    if (bytes > 0 && bytes % (std::size_t{1} << shift) == 0) return std::to_string(bytes >> shift) + letter;
  return std::to_string(bytes);
}

std::string to_text(const Rule& rule) {
  return fmt::format("rule    {:<14} {:>5}  {:<7} {:>5}  {:<9}  {:<18} {:>5}", to_string(rule.collective),
                     or_any(rule.max_ranks == kAnyRanks, std::to_string(rule.max_ranks)),
                     kHostWords[static_cast<std::size_t>(rule.hosts)],
                     or_any(rule.max_bytes == kAnyBytes, size_text(rule.max_bytes)), to_string(rule.order),
                     to_string(rule.algorithm), or_any(rule.chunk_bytes == 0, size_text(rule.chunk_bytes)));
}

std::string to_text(const ChoiceTable& table) {
  std::string text = fmt::format("{} {}\n", kFirstWords, kVersion);
  print_link(text, "shm", table.model.local);
  print_link(text, "tcp", table.model.remote);
  for (const auto& [bytes, us] : table.model.reduce.points)
    text += fmt::format("reduce  {:>5} {}\n", size_text(static_cast<std::size_t>(bytes)), us);
  text += fmt::format("cores   {}\nswitch  shm {}\nswitch  tcp {}\n", table.model.cores, table.model.local.switch_us,
                      table.model.remote.switch_us);
  for (const Rule& rule : table.rules) text += to_text(rule) + "\n";
  return text;
}

// FNV-1a (Fowler, Noll, Vo), 64 bits.
std::uint64_t hash_of(const ChoiceTable& table) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : to_text(table)) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace tutti::internal
