// SPDX-License-Identifier: BSD-3-Clause
#include "apps/split/table.hpp"

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <limits>
#include <locale>
#include <set>
#include <stdexcept>
#include <system_error>
#include <type_traits>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <c10/util/StringUtil.h>

namespace troupe::apps::split {

namespace {

constexpr std::int64_t columns_of_example = 16;
constexpr std::size_t longest_line = 1 << 20;

[[noreturn]] void refuse(const std::string& where, const std::string& what) { throw std::runtime_error(where + ": " + what); }

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> result(1);
  for (const char each : line) {
    if (each == ',')
      result.emplace_back();
    else if (each != '\r')
      result.back() += each;
  }
  return result;
}

template <class Number>
Number number_in(const std::string& field, const std::string& where) {
  Number result{};
  const auto [end, problem] = std::from_chars(field.data(), field.data() + field.size(), result);
  bool is_number = problem == std::errc{} && end == field.data() + field.size();
  if constexpr (std::is_floating_point_v<Number>) is_number = is_number && std::isfinite(result);
  if (!is_number) refuse(where, "expected a number, got '" + field + "'");
  return result;
}

/// Reads lines of limited length, because a file such as /dev/zero has neither line ends nor an end.
class line_reader {
 public:
  explicit line_reader(const std::string& file) : in_(file) {}
  bool is_open() const { return in_.is_open(); }
  bool next(std::string& line, const std::string& where) {
    in_.getline(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    if (in_.bad()) refuse(where, "can't be read: " + std::generic_category().message(errno));
    if (in_.fail() && !in_.eof()) refuse(where, "expected a line of at most 1 MiB");
    line.assign(buffer_.data(), static_cast<std::size_t>(in_.gcount()) - (in_.eof() ? 0 : 1));
    return !in_.fail();
  }

 private:
  std::ifstream in_;
  std::vector<char> buffer_ = std::vector<char>(longest_line + 1);
};

std::ofstream opened(const std::filesystem::path& file) {
  std::ofstream result(file);
  if (!result) refuse(file.string(), "can't be written");
  result.imbue(std::locale::classic());
  result.precision(std::numeric_limits<float>::max_digits10);
  return result;
}

}  // namespace

table read_table(const std::string& file) {
  line_reader in(file);
  if (!in.is_open()) refuse(file, "no such file, or it can't be read");
  std::string line;
  in.next(line, file + ":1");
  const auto columns = fields_of(line).size();
  if (columns < 2) refuse(file + ":1", "expected a line of names, as in 'person,x1,x2', got '" + line + "'");
  table result;
  std::vector<float> values;
  std::set<std::int64_t> known;
  for (int number = 2;; ++number) {
    const auto where = file + ":" + std::to_string(number);
    if (!in.next(line, where)) break;
    const auto fields = fields_of(line);
    if (fields.size() != columns)
      refuse(where, "expected " + std::to_string(columns) + " fields, got " + std::to_string(fields.size()));
    const auto person = number_in<std::int64_t>(fields.front(), where);
    if (!known.insert(person).second) refuse(where, "person " + std::to_string(person) + " has a line already");
    result.people.push_back(person);
    for (std::size_t i = 1; i < columns; ++i) values.push_back(number_in<float>(fields[i], where));
  }
  if (result.people.empty()) refuse(file, "expected a line for each person, got none");
  result.values = at::tensor(values).view({result.rows(), static_cast<std::int64_t>(columns) - 1});
  return result;
}

table read_labels(const std::string& file) {
  auto result = read_table(file);
  if (const auto columns = result.columns(); columns != 1)
    refuse(file + ":1", "expected two columns, as in 'person,label', got " + std::to_string(columns + 1));
  for (std::int64_t row = 0; row < result.rows(); ++row)
    if (const auto label = result.values[row][0].item<float>(); label != 0 && label != 1)
      refuse(file + ":" + std::to_string(row + 2), "expected the label 0 or 1, got " + c10::str(label));
  return result;
}

void write_example(const std::string& folder, std::int64_t rows, std::uint64_t seed) {
  for (const auto* name : {"features.csv", "labels.csv"})
    if (const auto file = std::filesystem::path(folder) / name; std::filesystem::exists(file))
      refuse(file.string(), "is there already, and is not overwritten; name another folder");
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  if (problem) refuse(folder, "can't be made: " + problem.message());
  auto random = at::make_generator<at::CPUGeneratorImpl>(seed);
  const auto features = at::randn({rows, columns_of_example}, random);
  const auto pairs = features.view({rows, columns_of_example / 2, 2}).prod(2).sum(1);
  const auto labels = (pairs + 0.3 * at::randn({rows}, random)).gt(0).to(at::kFloat);
  auto of_features = opened(std::filesystem::path(folder) / "features.csv");
  auto of_labels = opened(std::filesystem::path(folder) / "labels.csv");
  of_features << "person";
  for (std::int64_t i = 1; i <= columns_of_example; ++i) of_features << ",x" << i;
  of_features << "\n";
  of_labels << "person,label\n";
  for (std::int64_t row = 0; row < rows; ++row) {
    of_features << row + 1;
    for (std::int64_t i = 0; i < columns_of_example; ++i) of_features << ',' << features[row][i].item<float>();
    of_features << "\n";
    of_labels << row + 1 << ',' << labels[row].item<float>() << "\n";
  }
  if (!of_features.flush() || !of_labels.flush()) refuse(folder, "can't be written: no room?");
}

}  // namespace troupe::apps::split
