#include "net/secret.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <sys/random.h>

#include <cerrno>
#include <memory>
#include <mutex>

#include "base/descriptor.h"
#include "base/process_mutex.h"
#include "tutti/error.h"

namespace tutti::internal {

namespace {

// OpenSSL has locks that a forked child may find held by a thread that it does not have. So no thread of the library is
// in OpenSSL when the process forks, nor goes there once more when it ends.
class InOpenssl {
 public:
  InOpenssl() = default;
  ~InOpenssl() { ::OPENSSL_thread_stop(); }
  InOpenssl(const InOpenssl&) = delete;
  InOpenssl& operator=(const InOpenssl&) = delete;

 private:
  const std::lock_guard<std::mutex> lock_{process_mutex(ProcessWide::openssl)};
};

}  // namespace

Digest hmac_sha256(std::string_view key, std::span<const std::byte> message) {
  const InOpenssl here;
  const std::unique_ptr<EVP_MAC, decltype(&EVP_MAC_free)> mac(EVP_MAC_fetch(nullptr, "HMAC", nullptr), &EVP_MAC_free);
  const std::unique_ptr<EVP_MAC_CTX, decltype(&EVP_MAC_CTX_free)> context(EVP_MAC_CTX_new(mac.get()),
                                                                          &EVP_MAC_CTX_free);
  char digest[] = "SHA256";
  const OSSL_PARAM parameters[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
                                   OSSL_PARAM_construct_end()};
  // OpenSSL takes a null key for "the one set before", so an empty key needs an address.
  const auto* key_bytes = reinterpret_cast<const unsigned char*>(key.empty() ? "" : key.data());
  Digest result;
  std::size_t written = 0;
  if (!context || EVP_MAC_init(context.get(), key_bytes, key.size(), parameters) != 1 ||
      EVP_MAC_update(context.get(), reinterpret_cast<const unsigned char*>(message.data()), message.size()) != 1 ||
      EVP_MAC_final(context.get(), reinterpret_cast<unsigned char*>(result.data()), &written, result.size()) != 1 ||
      written != result.size())
    throw Error(ErrorCode::system, "OpenSSL cannot compute HMAC-SHA256: is its default provider available?");
  return result;
}

bool equal_in_constant_time(const Digest& a, const Digest& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Digest random_digest() {
  Digest result;
  if (::getrandom(result.data(), result.size(), 0) != static_cast<ssize_t>(result.size()))
    throw Error(ErrorCode::system, "the system has no random bytes to give: getrandom: " + system_words(errno));
  return result;
}

std::string to_hex(std::span<const std::byte> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte b : bytes) {
    text += kDigits[std::to_integer<int>(b >> 4)];
    text += kDigits[std::to_integer<int>(b & std::byte{15})];
  }
  return text;
}

}  // namespace tutti::internal
