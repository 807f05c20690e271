#include "net/network.h"

#include <gtest/gtest.h>

#include "net/secret.h"
#include "net/socket.h"
#include "tutti/error.h"

namespace tutti::internal {
namespace {

TEST(Endpoint, IsWrittenAsPeopleWriteIt) {
  EXPECT_EQ(Endpoint::parse("10.0.0.7", 29500)->text(), "10.0.0.7:29500");
  EXPECT_EQ(Endpoint::parse("::1", 29500)->text(), "[::1]:29500");
  EXPECT_EQ(Endpoint::local("name").text(), "local socket name");
  EXPECT_FALSE(Endpoint::parse("localhost", 1));
  EXPECT_FALSE(Endpoint::parse("", 1));
  EXPECT_TRUE(Endpoint::parse("127.3.2.1", 1)->is_loopback());
  EXPECT_TRUE(Endpoint::parse("::1", 1)->is_loopback());
  EXPECT_FALSE(Endpoint::parse("128.0.0.1", 1)->is_loopback());
  EXPECT_THROW(Endpoint::local(std::string(108, 'x')), Error);
}

TEST(Network, AnAddressMayStandInBrackets) {
  EXPECT_EQ(without_brackets("[::1]"), "::1");
  EXPECT_EQ(without_brackets("::1"), "::1");
  EXPECT_EQ(without_brackets("["), "[");
  EXPECT_EQ(without_brackets(""), "");
}

TEST(Network, ANameThatDoesNotResolveIsNamed) {
  try {
    resolve("no-such-host.invalid", 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, ErrorCode::unreachable);
    EXPECT_NE(std::string(error.what()).find("'no-such-host.invalid' does not resolve"), std::string::npos);
  }
}

TEST(Network, AnInterfaceIsFoundByNameAndByAddress) {
  EXPECT_TRUE(find_interface("lo").is_loopback());
  EXPECT_EQ(find_interface("127.0.0.1").address(), "127.0.0.1");
  try {
    find_interface("nosuch0");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, ErrorCode::invalid_argument);
    EXPECT_NE(std::string(error.what()).find("lo (127.0.0.1)"), std::string::npos) << error.what();
  }
}

TEST(Network, OwnAddressesAreOfThisHostAndOthersAreNot) {
  EXPECT_TRUE(is_of_this_host(loopback()));
  EXPECT_TRUE(is_of_this_host(outward()));
  EXPECT_FALSE(is_of_this_host(*Endpoint::parse("192.0.2.55", 1)));
  EXPECT_FALSE(host_id().empty());
  EXPECT_EQ(host_id(), host_id());
}

TEST(Socket, APortRangeIsUsedUpAndThenNamed) {
  const Socket first = listen_in(loopback(), 0, 0);
  const std::uint16_t port = own_end(first.fd()).port();
  EXPECT_THROW(listen_in(loopback(), port, port), Error);
  EXPECT_THROW(listen_at(loopback().with_port(port)), Error);
  EXPECT_THROW(listen_at(Endpoint::parse("192.0.2.55", port)->with_port(port)), Error);
}

TEST(Secret, HmacIsTheOneOfRfc4231) {
  const std::string text = "what do ya want for nothing?";
  EXPECT_EQ(to_hex(hmac_sha256("Jefe", std::as_bytes(std::span(text)))),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(to_hex(hmac_sha256("", {})), "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
  EXPECT_NE(random_digest(), random_digest());
}

}  // namespace
}  // namespace tutti::internal
