// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/objects/checkpoint_test.cpp
#include <troupe/actors/objects/checkpoint.hpp>

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include <ATen/ops/empty.h>
#include <nlohmann/json.hpp>

#include <troupe/actors/objects/random_state.hpp>
#include <troupe/actors/objects/safetensors.hpp>
#include <troupe/actors/support/strict_json.hpp>
#include <troupe/actors/support/texts.hpp>
#include <troupe/messages/errors.hpp>

// A part is a file of tensors (safetensors.hpp). Parameters and buffers have their own names. `troupe:<slot>/<parameter>` is
// what the optimizer keeps for a parameter, `troupe:random` the state of the random number generator. All that is no tensor is
// JSON in the metadata "troupe":
//   {"version": 4, "node": "a", "save": "0123456789abcdef", "optimizer": "adam", "groups": [{"lr": 0.1, "amsgrad": false}],
//    "parameters": [{"name": "0/weight", "group": 0, "step": 7}], "buffers": ["0/mean"]}
// A parameter that the optimizer has not stepped yet has no "step".
namespace troupe::objects {

namespace {

using nlohmann::json;
using support::fail_at;
using support::shown;

constexpr auto metadata_name = "troupe";
constexpr auto own_prefix = "troupe:";
constexpr auto random_name = "troupe:random";
constexpr std::uint64_t most_steps = std::uint64_t{1} << 62;  // libtorch adds one for each further step
constexpr std::size_t most_nested = 4;                        // the metadata, its parameters, one of them, its slots

std::string slot_name(const std::string& slot, const std::string& parameter) { return own_prefix + slot + "/" + parameter; }

json to_json(const attributes& options) {
  auto all = json::object();
  for (const auto& [name, value] : options) {
    if (const auto* truth = std::get_if<bool>(&value.value))
      all[name] = *truth;
    else if (const auto* integer = std::get_if<std::int64_t>(&value.value))
      all[name] = *integer;
    else if (const auto number = std::get<double>(value.value); std::isfinite(number))
      all[name] = number;
    else
      throw error(errc::misuse, "can't write a checkpoint: option '" + name + "' of the optimizer is not finite");
  }
  return all;
}

attributes options_from(const json& from) {
  attributes options;
  if (!from.is_object()) fail_at("groups", "expected an object of options, got " + shown(from));
  for (const auto& [name, value] : from.items()) {
    if (!value.is_boolean() && !value.is_number())
      fail_at("groups", "expected true, false or a number as option '" + name + "', got " + shown(value));
    options.emplace(name, value.is_boolean() ? attribute(value.get<bool>()) : attribute(value.get<double>()));
  }
  return options;
}

void add_named(named_tensors& to, const named_tensors& from) {
  for (const auto& [name, tensor] : from) {
    if (name.starts_with(own_prefix))
      throw error(errc::misuse, "can't write tensor '" + name + "' to a checkpoint: names that begin with '" + own_prefix +
                                  "' are those of the optimizer's state");
    to.emplace_back(name, tensor);
  }
}

tensor_writer writer_of(const checkpoint_part& part) {
  named_tensors tensors;
  add_named(tensors, part.parameters);
  add_named(tensors, part.buffers);
  json about{{"version", checkpoint_format},
             {"node", part.node},
             {"save", part.save},
             {"optimizer", part.optimizer},
             {"groups", json::array({to_json(part.options)})},
             {"parameters", json::array()},
             {"buffers", json::array()}};
  for (const auto& each : part.further) about["groups"].push_back(to_json(each));
  const auto& slots = optimizer_kind::find(part.optimizer).slots();
  for (std::size_t p = 0; p < part.parameters.size(); ++p) {
    const auto& name = part.parameters[p].first;
    const auto& state = part.states[p];
    auto& entry = about["parameters"].emplace_back(json{{"name", name}, {"group", part.groups.empty() ? 0 : part.groups[p]}});
    if (!state.present) continue;
    entry["step"] = state.step;
    auto& kept = entry["slots"] = json::array();
    for (std::size_t s = 0; s < slots.size(); ++s)
      if (state.slots[s].defined()) {
        kept.push_back(slots[s]);
        tensors.emplace_back(slot_name(slots[s], name), state.slots[s]);
      }
  }
  for (const auto& [name, tensor] : part.buffers) about["buffers"].push_back(name);
  if (part.random.defined()) tensors.emplace_back(random_name, part.random);
  try {
    return tensor_writer(std::move(tensors), {{"format", "pt"}, {metadata_name, about.dump()}});
  } catch (const json::type_error&) {
    throw error(errc::misuse, "can't write a checkpoint with names of nodes or parameters that are not UTF-8");
  }
}

/// Takes what a part says of itself and its tensors. Throws std::runtime_error for anything that is missing, of another type,
/// or too much.
class part_reader {
 public:
  explicit part_reader(tensor_file file) {
    const auto found = file.metadata.find(metadata_name);
    if (found == file.metadata.end()) fail_at("the metadata", "expected the field 'troupe', which is not there");
    about_ = support::parse_strictly(found->second, "the metadata", most_nested);
    for (auto& [name, tensor] : file.tensors) tensors_.emplace(std::move(name), std::move(tensor));
  }

  checkpoint_part read(const std::string& save) {
    if (const auto version = field(about_, "version"); version != checkpoint_format)
      fail_at("version",
              "it has format " + shown(version) + "; this program reads format " + std::to_string(checkpoint_format));
    checkpoint_part part;
    part.node = text(field(about_, "node"));
    part.save = text(field(about_, "save"));
    if (part.save != save) fail_at("save", "it belongs to save " + part.save + ", not " + save);
    part.optimizer = text(field(about_, "optimizer"));
    const auto& groups = list("groups");
    for (const auto& each : groups) part.further.push_back(options_from(each));
    if (groups.empty()) fail_at("groups", "expected at least one parameter group, got none");
    part.options = std::move(part.further.front());
    part.further.erase(part.further.begin());
    for (const auto& each : list("parameters")) read_parameter(each, part);
    if (part.further.empty()) part.groups.clear();
    for (const auto& each : list("buffers")) part.buffers.emplace_back(text(each), take(text(each)));
    if (tensors_.contains(random_name)) check_random_state(part.random = take(random_name));
    if (!tensors_.empty())
      fail_at("the metadata", "expected no tensor that it does not name, got '" + tensors_.begin()->first + "'");
    return part;
  }

 private:
  static const json& field(const json& of, const char* name) {
    if (!of.is_object() || !of.contains(name))
      fail_at("the metadata", std::string("expected the field '") + name + "', got " + shown(of));
    return of.at(name);
  }
  static const std::string& text(const json& value) {
    if (!value.is_string()) fail_at("the metadata", "expected a text, got " + shown(value));
    return value.get_ref<const std::string&>();
  }
  const json& list(const char* name) const {
    const auto& value = field(about_, name);
    if (!value.is_array()) fail_at(name, "expected a list, got " + shown(value));
    return value;
  }
  at::Tensor take(const std::string& name) {
    const auto found = tensors_.extract(name);
    if (found.empty()) fail_at("the metadata", "expected a tensor called '" + name + "', which is not there or named twice");
    return found.mapped();
  }

  void read_parameter(const json& from, checkpoint_part& part) {
    const auto& name = text(field(from, "name"));
    const auto& group = field(from, "group");
    if (!group.is_number_unsigned() || group > part.further.size())
      fail_at("parameter '" + name + "'",
              "expected a group from 0 to " + std::to_string(part.further.size()) + ", got " + shown(group));
    part.groups.push_back(group.get<std::int64_t>());
    part.parameters.emplace_back(name, take(name));
    auto& state = part.states.emplace_back();
    const auto step = from.find("step");
    if (step != from.end() && (!step->is_number_unsigned() || step->get<std::uint64_t>() > most_steps))
      fail_at("parameter '" + name + "'", "expected a step from 0 to " + std::to_string(most_steps) + ", got " + shown(*step));
    state.present = step != from.end();
    if (state.present) state.step = step->get<std::int64_t>();
    auto kept = state.present ? field(from, "slots") : json::array();
    for (const auto& slot : optimizer_kind::find(part.optimizer).slots()) {
      const auto listed = std::find(kept.begin(), kept.end(), slot);
      state.slots.push_back(listed == kept.end() ? at::Tensor() : take(slot_name(slot, name)));
      if (listed != kept.end()) kept.erase(listed);
    }
    if (!kept.is_array() || !kept.empty())
      fail_at("parameter '" + name + "'",
              "expected the names of what the optimizer keeps, each once, got " + shown(kept) + " too");
  }

  json about_;
  std::unordered_map<std::string, at::Tensor> tensors_;
};

/// Reads a part whose file has the digest `found`. `file`: what read_tensors() takes.
template <class File>
checkpoint_part checked_part(const std::string& path, const support::file_digest& found, const support::file_digest& expected,
                             const std::string& save, const File& file) {
  expect_digest(path, found, expected);
  try {
    return part_reader(read_tensors(file, path)).read(save);
  } catch (const error&) {
    throw;
  } catch (const std::exception& failed) {
    throw error(errc::function_failed, "'" + path + "' is not a checkpoint of troupe: " + support::text_of(failed));
  }
}

}  // namespace

void expect_digest(const std::string& path, const support::file_digest& found, const support::file_digest& expected) {
  if (found != expected)
    throw error(errc::function_failed,
                "'" + path + "' is damaged or of another save: it has " + std::to_string(found.bytes) + " bytes" +
                  (found.bytes == expected.bytes ? " with another checksum than"
                                                 : ", not the " + std::to_string(expected.bytes) + " that") +
                  " checkpoint.json says");
}

std::uint64_t estimated_bytes(const checkpoint_part& part) {
  constexpr std::uint64_t around_a_tensor = 1024;  // its name, dtype and shape
  constexpr std::uint64_t around_a_part = std::uint64_t{1} << 16;
  auto bytes = around_a_part + writer_of(part).bytes();
  // A parameter that was not stepped yet will have every slot later.
  const auto slots = optimizer_kind::find(part.optimizer).slots().size();
  for (std::size_t i = 0; i < part.parameters.size(); ++i)
    if (!part.states[i].present) bytes += slots * (around_a_tensor + part.parameters[i].second.nbytes());
  return bytes;
}

support::file_digest write_part(const support::file_location& location, const checkpoint_part& part) {
  const auto writer = writer_of(part);
  support::durable_file file(location);
  writer.write([&file](const void* data, std::size_t size) { file.write(data, size); });
  return file.commit();
}

checkpoint_part read_part(const support::file_location& location, const support::file_digest& expected,
                          const std::string& save) {
  const auto file = location.read();
  return checked_part(location.text(), support::file_digest::of(file, location.text()), expected, save, file);
}

at::Tensor part_bytes(const checkpoint_part& part) {
  const auto writer = writer_of(part);
  auto bytes = at::empty({static_cast<std::int64_t>(writer.bytes())}, at::kByte);
  auto* to = bytes.mutable_data_ptr<std::uint8_t>();
  writer.write(
    [&to](const void* data, std::size_t size) { to = std::copy_n(static_cast<const std::uint8_t*>(data), size, to); });
  return bytes;
}

support::file_digest digest_of(const at::Tensor& bytes) {
  support::checksum sum;
  sum.update(bytes.const_data_ptr(), bytes.nbytes());
  return {bytes.nbytes(), sum.value()};
}

checkpoint_part parse_part(const at::Tensor& bytes, const std::string& path, const support::file_digest& expected,
                           const std::string& save) {
  return checked_part(path, digest_of(bytes), expected, save, bytes);
}

}  // namespace troupe::objects
