// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/split_learning_test.cpp
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace troupe::apps::split {

/// A table of one party. It has a row for each person, and the person's number. Both parties use the same numbers.
struct table {
  std::vector<std::int64_t> people;  // the number of each row's person
  at::Tensor values;                 // [rows, columns] float

  std::int64_t rows() const { return static_cast<std::int64_t>(people.size()); }
  std::int64_t columns() const { return values.size(1); }
};

/// Reads a file of comma-separated values. The first line has the names of the columns. Each other line has the number of a
/// person and then the person's values. Throws std::runtime_error with the file, the line, what was expected and what came.
table read_table(const std::string& file);
/// As read_table(), for a file with one column of labels, each 0 or 1.
table read_labels(const std::string& file);

/// Writes an example to the folder: features.csv with 16 numbers for each person, and labels.csv with 0 or 1. One number alone
/// does not tell the label. Throws std::runtime_error, also if one of the files exists already.
void write_example(const std::string& folder, std::int64_t rows, std::uint64_t seed);

}  // namespace troupe::apps::split
