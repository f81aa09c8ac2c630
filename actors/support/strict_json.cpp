// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/support/strict_json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <troupe/actors/support/texts.hpp>

namespace troupe::support {

using nlohmann::json;

constexpr std::uintmax_t largest_file = 1 << 20;

void fail_at(const std::string& where, const std::string& what) { throw std::runtime_error(where + ": " + what); }

std::string shown(const json& value) {
  auto text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

std::string read_small_file(const std::string& path, const std::string& what) {
  std::error_code problem;
  if (!std::filesystem::exists(path, problem)) fail_at(path, "no such file; expected " + what);
  if (!std::filesystem::is_regular_file(path, problem)) fail_at(path, "not a file; expected " + what);
  const auto size = std::filesystem::file_size(path, problem);
  if (!problem && size > largest_file)
    fail_at(path, "expected a file of at most " + std::to_string(largest_file) + " bytes, got " + std::to_string(size));
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file.is_open() || file.bad()) fail_at(path, "cannot read it: " + std::generic_category().message(errno));
  if (text.empty()) fail_at(path, "the file is empty; expected " + what);
  return text;
}

namespace {

/// Checks a text before it is parsed into values. json::parse() with a callback would look at all values of an object again
/// whenever one of them ends.
class strict_reader final : public nlohmann::json_sax<json> {
 public:
  strict_reader(const std::string& origin, std::size_t most_nested) : origin_(origin), most_nested_(most_nested) {}

  bool null() override { return count(); }
  bool boolean(bool) override { return count(); }
  bool number_integer(number_integer_t) override { return count(); }
  bool number_unsigned(number_unsigned_t) override { return count(); }
  bool number_float(number_float_t, const string_t&) override { return count(); }
  bool string(string_t&) override { return count(); }
  bool binary(binary_t&) override { return count(); }
  bool start_object(std::size_t) override { return open(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (!names_.back().insert(name).second)
      fail_at(origin_, "the field \"" + name + "\" is written twice in one object; expected it once");
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const json::exception&) override { return false; }  // parse() reports it

 private:
  bool count() {
    constexpr std::size_t most_values = 1'000'000;
    if (++values_ > most_values) fail_at(origin_, "expected at most " + std::to_string(most_values) + " values, got more");
    return true;
  }
  bool open() {
    if (names_.size() == most_nested_)
      fail_at(origin_, "expected objects and lists nested at most " + std::to_string(most_nested_) + " deep, got more");
    names_.emplace_back();
    return count();
  }
  bool close() {
    names_.pop_back();
    return true;
  }

  const std::string& origin_;
  const std::size_t most_nested_;
  std::size_t values_ = 0;
  std::vector<std::set<std::string>> names_;  // of the fields of each open object or list
};

}  // namespace

json parse_strictly(const std::string& text, const std::string& origin, std::size_t most_nested) {
  strict_reader look(origin, most_nested);
  json::sax_parse(text, &look);
  try {
    return json::parse(text);
  } catch (const json::exception& e) {
    std::string reason = e.what();
    auto at = reason.find("parse error");
    fail_at(origin, "not valid JSON: " + (at == std::string::npos ? reason : reason.substr(at)));
  }
}

void check_fields(const json& object, const std::string& where, const std::vector<std::string>& known) {
  for (auto& [name, value] : object.items()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    fail_at(where, "unknown field \"" + name + "\"; expected " + (known.size() == 1 ? "only " : "one of ") + joined(known));
  }
}

std::vector<std::string> read_texts(const json& object, const std::string& where, const std::string& field) {
  std::vector<std::string> result;
  const auto found = object.find(field);
  if (found == object.end()) return result;
  if (!found->is_array()) fail_at(where + "." + field, "expected a list of texts in quotes, got " + shown(*found));
  for (const auto& each : *found) {
    if (!each.is_string()) fail_at(where + "." + field, "expected a list of texts in quotes, got " + shown(*found));
    result.push_back(each.get<std::string>());
  }
  return result;
}

}  // namespace troupe::support
