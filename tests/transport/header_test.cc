#include "transport/header.h"

#include <gtest/gtest.h>

#include <string>

#include "types/call.h"

namespace tutti {
namespace {

Header example() {
  Header header;
  header.communicator = 0x0102030405060708;
  header.tag.word = {0x1112131415161718, 0x2122232425262728};
  header.message = 5;
  header.offset = 0x100;
  header.length = 0x20;
  header.total = 0x120;
  return header;
}

std::string hex(std::span<const std::byte> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<int>(byte) >> 4];
    text += kDigits[std::to_integer<int>(byte) & 15];
  }
  return text;
}

// The worked example of the format.
TEST(Header, LiesInMemoryAsSpecified) {
  EXPECT_EQ(hex(example().encode()),
            "31495554"          // magic: "1IUT"
            "0100"              // version
            "0000"              // kind: data
            "0807060504030201"  // communicator
            "1817161514131211"
            "2827262524232221"    // tag
            "0500000000000000"    // message
            "0001000000000000"    // offset
            "2000000000000000"    // length
            "2001000000000000");  // total
}

// The worked example of docs/reference/protocols.md.
TEST(Header, OfTheFirstMessageOfACallIsAsDocumented) {
  const runtime::Call call{.sequence = 1,
                           .collective = Collective::all_reduce,
                           .dtype = DType::float32,
                           .op = Op::sum,
                           .order = Order::canonical,
                           .algorithm = Algorithm::one_shot,
                           .count = 4};
  Header header;
  header.communicator = 42;
  header.tag = call.pack();
  header.length = header.total = 16;
  EXPECT_EQ(hex(header.encode()),
            "3149555401000000"
            "2a00000000000000"
            "0001000001000000"
            "0000040000000000"
            "0000000000000000"
            "0000000000000000"
            "1000000000000000"
            "1000000000000000");
}

TEST(Header, DecodesWhatItEncoded) {
  const std::optional<Header> back = Header::decode(example().encode());
  ASSERT_TRUE(back);
  EXPECT_EQ(back->encode(), example().encode());
  EXPECT_EQ(back->tag, example().tag);
  EXPECT_EQ(back->total, 0x120u);
}

TEST(Header, RefusesAnyOtherMagicVersionOrKind) {
  for (std::size_t byte = 0; byte < 8; ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      auto bytes = example().encode();
      bytes[byte] ^= static_cast<std::byte>(1 << bit);
      EXPECT_FALSE(Header::decode(bytes)) << byte << "." << bit;
    }
  }
}

TEST(Header, RefusesAFragmentOutsideItsMessage) {
  Header header = example();
  header.offset = 0x101;
  EXPECT_FALSE(Header::decode(header.encode()));
  header.offset = ~std::uint64_t{0} - 0xf;  // offset + length wraps around to 0x10
  EXPECT_FALSE(Header::decode(header.encode()));
  header.offset = 0;
  header.length = 0x121;
  EXPECT_FALSE(Header::decode(header.encode()));
}

}  // namespace
}  // namespace tutti
