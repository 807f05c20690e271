// JSON, as the recorder writes it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tutti::internal::json {

inline std::string quoted(const std::string& text) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string all = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') all += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) {
      all += c;
    } else {
      all.append("\\u00").append(1, kDigits[c >> 4]).append(1, kDigits[c & 15]);
    }
  }
  return all + '"';
}

// An object, field by field.
class Object {
 public:
  Object& raw(const char* name, const std::string& value) {
    text_.append(text_.size() > 1 ? ",\"" : "\"").append(name).append("\":").append(value);
    return *this;
  }
  Object& text(const char* name, const std::string& value) { return raw(name, quoted(value)); }
  Object& number(const char* name, std::int64_t value) { return raw(name, std::to_string(value)); }
  std::string done() const { return text_ + "}"; }

 private:
  std::string text_ = "{";
};

inline std::string listed(const std::vector<std::string>& values, const char* between) {
  std::string all = "[";
  for (const std::string& value : values) all.append(all.size() > 1 ? between : "").append(value);
  return all + "]";
}

}  // namespace tutti::internal::json
