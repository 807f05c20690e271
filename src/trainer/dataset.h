// Points (x, y) and how they are read from a CSV file.
#pragma once

#include <istream>
#include <string>
#include <vector>

namespace tutti::trainer {

struct Dataset {
  std::string name;  // for messages: the file's name
  std::vector<double> x;
  std::vector<double> y;
  std::size_t size() const { return x.size(); }
};

// Reads comma-separated values, one point a line. A header is optional: it names a column x and a column y, in any
// order, and further columns are then ignored; without one each line holds x,y. Blank lines, what follows a #, blanks
// around a number and CRLF line ends are skipped. Numbers are decimal, with a point whatever the locale.
//
// Throws Error{invalid_argument} that names file, line, column and the text when a number is not one, is not finite or
// does not fit a double; when a column is missing or too many; when there is no point at all; when two have one
// name; when a line has more than a MiB; when the file cannot be read, or is not a regular one.
Dataset read_csv(const std::string& path);
Dataset read_csv(std::istream& in, const std::string& name);

}  // namespace tutti::trainer
