#include "trainer/digest.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "tutti/error.h"

namespace tutti::trainer {
namespace {

void check(int openssl_result) {
  if (openssl_result != 1) throw Error(ErrorCode::system, "OpenSSL cannot compute SHA-256");
}

}  // namespace

struct Digest::Context {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> sha256{EVP_MD_CTX_new(), &EVP_MD_CTX_free};
};

Digest::Digest() : context_(std::make_unique<Context>()) {
  check(EVP_DigestInit_ex(context_->sha256.get(), EVP_sha256(), nullptr));
}

Digest::~Digest() = default;

void Digest::add(std::span<const double> values) {
  std::array<unsigned char, 4096> bytes;
  while (!values.empty()) {
    const auto part = values.first(std::min(values.size(), bytes.size() / 8));
    for (std::size_t i = 0; i < part.size(); ++i) {
      const auto bits = std::bit_cast<std::uint64_t>(part[i]);
      for (std::size_t b = 0; b < 8; ++b) bytes[8 * i + b] = static_cast<unsigned char>(bits >> (8 * b));
    }
    check(EVP_DigestUpdate(context_->sha256.get(), bytes.data(), 8 * part.size()));
    values = values.subspan(part.size());
  }
}

std::string Digest::hex() && {
  std::array<unsigned char, 32> hash;
  check(EVP_DigestFinal_ex(context_->sha256.get(), hash.data(), nullptr));
  std::string digits;
  for (unsigned char byte : hash) {
    digits += "0123456789abcdef"[byte >> 4];
    digits += "0123456789abcdef"[byte & 15];
  }
  return digits;
}

}  // namespace tutti::trainer
