#include "transport/header.h"

#include <gtest/gtest.h>

#include <string>

#include "documented.h"
#include "types/call.h"

namespace tutti::internal {
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

TEST(Header, LiesInMemoryAsSpecified) {
  EXPECT_EQ(in_hex(example().encode()),
            "31 49 55 54 "              // magic: "1IUT"
            "01 00 "                    // version
            "00 00 "                    // kind: data
            "08 07 06 05 04 03 02 01 "  // communicator
            "18 17 16 15 14 13 12 11 "
            "28 27 26 25 24 23 22 21 "    // tag
            "05 00 00 00 00 00 00 00 "    // message
            "00 01 00 00 00 00 00 00 "    // offset
            "20 00 00 00 00 00 00 00 "    // length
            "20 01 00 00 00 00 00 00 ");  // total
}

// The worked example of docs/reference/protocols.md.
TEST(Header, OfTheFirstMessageOfACallIsAsDocumented) {
  const internal::Call call{.sequence = 1,
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
  EXPECT_EQ(in_hex(header.encode()), documented("header"));
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
}  // namespace tutti::internal
