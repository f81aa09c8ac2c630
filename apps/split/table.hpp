// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/split_learning_test.cpp
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace troupe::apps::split {

/// A table of one party: a row for each person, with the person's number. Both parties know the numbers.
struct table {
  std::vector<std::int64_t> people;  // one for each row
  at::Tensor values;                 // [rows, columns] float

  std::int64_t rows() const { return static_cast<std::int64_t>(people.size()); }
  std::int64_t columns() const { return values.size(1); }
};

/// Reads a file of comma-separated values: a line of names, then a line for each person, whose number comes first. Throws
/// std::runtime_error with the file, the line, what was expected and what came.
table read_table(const std::string& file);
/// As read_table(), for a file with one column of labels, each 0 or 1.
table read_labels(const std::string& file);

/// Writes an example to the folder: features.csv with 16 numbers of each person, and labels.csv with 0 or 1. Nobody can tell
/// the label from one number alone. Throws std::runtime_error, also if one of the files is there already.
void write_example(const std::string& folder, std::int64_t rows, std::uint64_t seed);

}  // namespace troupe::apps::split
