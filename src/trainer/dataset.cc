#include "trainer/dataset.h"

#include <sys/stat.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <optional>
#include <string_view>

#include "tutti/error.h"

namespace tutti::trainer {
namespace {

constexpr std::string_view kBlanks = " \t\r";
constexpr std::size_t kLongestQuote = 40;
constexpr std::size_t kLongestLine = 1 << 20;

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

void split(std::string_view line, std::vector<std::string_view>& fields) {
  fields.clear();
  for (;;) {
    const std::size_t comma = line.find(',');
    fields.push_back(trimmed(line.substr(0, comma)));
    if (comma == std::string_view::npos) return;
    line.remove_prefix(comma + 1);
  }
}

// `text` in quotes, fit for a message: printable, not endless.
std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (char c : text.substr(0, kLongestQuote)) result += (c >= ' ' && c <= '~') ? c : '?';
  return result + (text.size() > kLongestQuote ? "…\"" : "\"");
}

// out = the number that is the whole of `text`. Otherwise what is wrong with it, as "… is not a number".
const char* parse(std::string_view text, double& out) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);  // from_chars takes no plus sign
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error == std::errc::invalid_argument || end != text.data() + text.size()) return "is not a number";
  if (error == std::errc::result_out_of_range) return "is too large or too small for a double";
  return std::isfinite(out) ? nullptr : "is not finite";
}

class CsvReader {
 public:
  explicit CsvReader(const std::string& name) { data_.name = name; }

  void read(std::istream& in) {
    std::string line(kLongestLine + 1, '\0');  // with room for a 0
    while (in.getline(line.data(), static_cast<std::streamsize>(line.size())) || in.gcount() > 0) {
      ++line_;
      if (in.fail()) refuse_line("has more than " + std::to_string(kLongestLine) + " bytes; is this a CSV file?");
      std::string_view text(line.data(), static_cast<std::size_t>(in.gcount()) - (in.eof() ? 0 : 1));
      if (line_ == 1 && text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // a byte order mark
      text = trimmed(text.substr(0, text.find('#')));
      if (text.empty()) continue;
      split(text, fields_);
      if (columns_ == 0 && take_header()) continue;
      take_point();
    }
  }

  Dataset finish() && {
    if (data_.size() == 0) {
      throw Error(ErrorCode::invalid_argument, data_.name + ": no points; each line should hold x,y");
    }
    return std::move(data_);
  }

 private:
  // The first line with anything in it is a header unless one of its fields is a number of some kind.
  bool take_header() {
    columns_ = 2;
    double ignored;
    for (std::string_view field : fields_) {
      const char* problem = parse(field, ignored);
      if (problem == nullptr || std::strcmp(problem, "is not a number") != 0) return false;
    }
    columns_ = fields_.size();
    x_column_ = find_column("x");
    y_column_ = find_column("y");
    return true;
  }

  std::size_t find_column(std::string_view name) const {
    std::optional<std::size_t> found;
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      std::string_view field = fields_[i];
      if (field.size() > 2 && field.front() == '"' && field.back() == '"') field = field.substr(1, field.size() - 2);
      if (field != name) continue;
      if (found) fail("is a header that names two columns " + std::string(name) + "; rename one of them");
      found = i;
    }
    if (found) return *found;
    fail("is a header that names no column " + std::string(name) + "; it should name x and y, or be left out");
  }

  void take_point() {
    if (fields_.size() != columns_) {
      fail("has " + std::to_string(fields_.size()) + (fields_.size() == 1 ? " column" : " columns") + " where " +
           std::to_string(columns_) + " are expected");
    }
    data_.x.push_back(number(x_column_, "x"));
    data_.y.push_back(number(y_column_, "y"));
  }

  double number(std::size_t column, const char* name) const {
    double value = 0;
    if (const char* problem = parse(fields_[column], value)) {
      throw Error(ErrorCode::invalid_argument, data_.name + ", line " + std::to_string(line_) + ", column " +
                                                   std::to_string(column + 1) + " (" + name +
                                                   "): " + quoted(fields_[column]) + " " + problem);
    }
    return value;
  }

  [[noreturn]] void fail(const std::string& what) const {
    std::string line;
    for (std::string_view field : fields_) line.append(line.empty() ? "" : ",").append(field.substr(0, kLongestQuote));
    refuse_line(quoted(line) + " " + what);
  }

  [[noreturn]] void refuse_line(const std::string& why) const {
    throw Error(ErrorCode::invalid_argument, data_.name + ", line " + std::to_string(line_) + ": " + why);
  }

  Dataset data_;
  std::size_t line_ = 0;
  std::size_t columns_ = 0;  // 0 until the first line with anything in it
  std::size_t x_column_ = 0;
  std::size_t y_column_ = 1;
  std::vector<std::string_view> fields_;
};

}  // namespace

Dataset read_csv(std::istream& in, const std::string& name) {
  CsvReader reader(name);
  reader.read(in);
  if (in.bad()) throw Error(ErrorCode::invalid_argument, name + ": cannot be read: " + std::strerror(errno));
  return std::move(reader).finish();
}

Dataset read_csv(const std::string& path) {
  // A pipe may keep open() waiting, a device never end; and each rank of a job reads the points anew.
  struct stat about {};
  if (::stat(path.c_str(), &about) == 0 && !S_ISREG(about.st_mode)) {
    throw Error(ErrorCode::invalid_argument, path + ": cannot be read: it is not a regular file");
  }
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) throw Error(ErrorCode::invalid_argument, path + ": cannot be opened: " + std::strerror(errno));
  return read_csv(in, path);
}

}  // namespace tutti::trainer
