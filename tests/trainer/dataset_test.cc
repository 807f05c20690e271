#include "trainer/dataset.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sstream>

#include "tutti/error.h"

namespace tutti::trainer {
namespace {

using Values = std::vector<double>;

Dataset parse(const std::string& text) {
  std::istringstream in(text);
  return read_csv(in, "points.csv");
}

std::string complaint_about(const std::string& text) {
  try {
    parse(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code, ErrorCode::invalid_argument);
    return error.what();
  }
  return "accepted";
}

TEST(Csv, ReadsPointsWithAndWithoutHeader) {
  for (const char* text :
       {"x,y\n1,2\n3,4\n", "1,2\n3,4\n", "1,2\n3,4", "\"x\",\"y\"\n1,2\n3,4\n", "\xEF\xBB\xBFx,y\n1,2\n3,4\n"}) {
    const Dataset data = parse(text);
    EXPECT_EQ(data.x, (Values{1, 3})) << text;
    EXPECT_EQ(data.y, (Values{2, 4})) << text;
  }
}

TEST(Csv, AHeaderNamesTheColumnsInAnyOrderAndOthersAreIgnored) {
  const Dataset data = parse("name,y,x\nfirst,2,1\nsecond,4,3\n");
  EXPECT_EQ(data.x, (Values{1, 3}));
  EXPECT_EQ(data.y, (Values{2, 4}));
}

TEST(Csv, SkipsCommentsBlankLinesBlanksAndCarriageReturns) {
  const Dataset data = parse("# measured\r\n\r\nx, y\r\n 1\t, 2 # a remark\r\n   \r\n# more\r\n3,4\r\n");
  EXPECT_EQ(data.x, (Values{1, 3}));
  EXPECT_EQ(data.y, (Values{2, 4}));
}

TEST(Csv, ReadsEveryWayToWriteADecimalToTheNearestDouble) {
  const Dataset data = parse("1e3,-2.5E-2\n+4.,.5\n0.1,-0\n1.7976931348623157e308,5e-324\n");
  EXPECT_EQ(data.x, (Values{1000, 4, 0.1, 1.7976931348623157e308}));
  EXPECT_EQ(data.y, (Values{-0.025, 0.5, 0, 5e-324}));
}

TEST(Csv, WhatIsNoNumberIsNamedByFileLineColumnAndText) {
  EXPECT_EQ(complaint_about("x,y\n1,2\n# fine\n3,four\n"),
            "points.csv, line 4, column 2 (y): \"four\" is not a number");
  EXPECT_EQ(complaint_about("y,x\n1,2x\n"), "points.csv, line 2, column 2 (x): \"2x\" is not a number");
  EXPECT_EQ(complaint_about("1,\n"), "points.csv, line 1, column 2 (y): \"\" is not a number");
  EXPECT_EQ(complaint_about("one,2\n"), "points.csv, line 1, column 1 (x): \"one\" is not a number");
  EXPECT_EQ(complaint_about("1,0x10\n"), "points.csv, line 1, column 2 (y): \"0x10\" is not a number");
  EXPECT_EQ(complaint_about("1,+-2\n"), "points.csv, line 1, column 2 (y): \"+-2\" is not a number");
  EXPECT_EQ(complaint_about("1,2 3\n"), "points.csv, line 1, column 2 (y): \"2 3\" is not a number");
}

TEST(Csv, WhatIsNotFiniteIsRefused) {
  EXPECT_EQ(complaint_about("1,nan\n"), "points.csv, line 1, column 2 (y): \"nan\" is not finite");
  EXPECT_EQ(complaint_about("x,y\n-inf,1\n"), "points.csv, line 2, column 1 (x): \"-inf\" is not finite");
  EXPECT_EQ(complaint_about("nan,nan\n"), "points.csv, line 1, column 1 (x): \"nan\" is not finite");
  EXPECT_EQ(complaint_about("1,1e999\n"),
            "points.csv, line 1, column 2 (y): \"1e999\" is too large or too small for a double");
}

TEST(Csv, MissingAndSuperfluousColumnsAreRefused) {
  EXPECT_EQ(complaint_about("x,y\n1,2\n3\n"), "points.csv, line 3: \"3\" has 1 column where 2 are expected");
  EXPECT_EQ(complaint_about("1,2,3\n"), "points.csv, line 1: \"1,2,3\" has 3 columns where 2 are expected");
  EXPECT_EQ(complaint_about("1;2\n"),
            "points.csv, line 1: \"1;2\" is a header that names no column x; it should name x and y, or be left out");
  EXPECT_EQ(complaint_about("x\n1\n"),
            "points.csv, line 1: \"x\" is a header that names no column y; it should name x and y, or be left out");
}

TEST(Csv, AHeaderThatNamesAColumnTwiceIsRefused) {
  EXPECT_EQ(complaint_about("x,x,y\n1,2,3\n"),
            "points.csv, line 1: \"x,x,y\" is a header that names two columns x; rename one of them");
  EXPECT_EQ(complaint_about("y,\"y\",x\n1,2,3\n"),
            "points.csv, line 1: \"y,\"y\",x\" is a header that names two columns y; rename one of them");
  EXPECT_EQ(parse("name,name,y,x\na,b,2,1\n").x, Values{1});
}

TEST(Csv, ALineWithoutEndIsRefusedAndAnyOtherRead) {
  const std::string longest = "1,2#" + std::string((1 << 20) - 4, '.');
  EXPECT_EQ(parse(longest).x, Values{1});
  EXPECT_EQ(parse("5,6\n" + longest + "\n3,4\n").x, (Values{5, 1, 3}));
  EXPECT_EQ(complaint_about("5,6\n" + longest + ".\n3,4\n"),
            "points.csv, line 2: has more than 1048576 bytes; is this a CSV file?");
  EXPECT_EQ(complaint_about(longest + "."), "points.csv, line 1: has more than 1048576 bytes; is this a CSV file?");
}

TEST(Csv, FilesWithoutPointsAreRefused) {
  for (const char* text : {"", "\n\n", "# nothing\n", "x,y\n"}) {
    EXPECT_EQ(complaint_about(text), "points.csv: no points; each line should hold x,y") << text;
  }
}

TEST(Csv, WhatIsQuotedInAMessageIsShortAndPrintable) {
  const std::string message = complaint_about("1,2\n3,\x01\x02" + std::string(100'000, 'z') + "\n");
  EXPECT_LT(message.size(), 120u);
  EXPECT_NE(message.find("\"??zzz"), std::string::npos) << message;
}

TEST(Csv, FilesThatCannotBeReadAreNamed) {
  for (const char* path : {"/nowhere/points.csv", "/"}) {
    try {
      read_csv(path);
      FAIL() << path << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code, ErrorCode::invalid_argument);
      EXPECT_TRUE(std::string(error.what()).starts_with(path)) << error.what();
      EXPECT_NE(std::string(error.what()).find("cannot be"), std::string::npos) << error.what();
    }
  }
}

TEST(Csv, WhatIsNoRegularFileIsRefusedAtOnce) {
  const std::string pipe = testing::TempDir() + "tutti_points_" + std::to_string(::getpid());
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {pipe, std::string("/dev/zero")}) {
    try {
      read_csv(path);
      FAIL() << path << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), path + ": cannot be read: it is not a regular file");
    }
  }
  ::unlink(pipe.c_str());
}

}  // namespace
}  // namespace tutti::trainer
