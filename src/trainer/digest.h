// SHA-256 over doubles, each taken as its 8 bytes, least significant first: the same on every machine.
#pragma once

#include <memory>
#include <span>
#include <string>

namespace tutti::trainer {

class Digest {
 public:
  Digest();
  ~Digest();
  void add(std::span<const double> values);
  std::string hex() &&;  // 64 lower-case digits

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

}  // namespace tutti::trainer
