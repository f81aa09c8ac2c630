// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/objects/checkpoint_test.cpp
#include <troupe/actors/objects/checkpoint.hpp>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <ATen/ops/empty.h>
#include <torch/serialize/output-archive.h>

#include <troupe/actors/objects/part_archive.hpp>
#include <troupe/actors/objects/random_state.hpp>
#include <troupe/actors/support/texts.hpp>
#include <troupe/messages/errors.hpp>

// A part is a TorchScript archive of flat lists: `names` and `values` of the parameters; `steps` (-1: the optimizer has not
// stepped the parameter yet) and `slots` (a list for each parameter; an empty tensor: the optimizer does not keep this slot);
// `buffer_names` and `buffers`; `random` (empty: not known). Parts of version 1 end before `buffer_names`. Parts of version 3 are of an
// optimizer with several parameter groups: the lists of options have those of one group after the other, `option_counts` says how many
// each group has, and `groups` has the group of each parameter.
namespace troupe::objects {

namespace {

constexpr std::int64_t version_with_groups = 3;
constexpr std::int64_t version_of_one_group = 2;
constexpr std::int64_t version_without_buffers = 1;
constexpr std::int64_t unseen = -1;

using string_list = std::vector<std::string>;

double to_number(const attribute& from) {
  if (const auto* truth = std::get_if<bool>(&from.value)) return *truth ? 1 : 0;
  if (const auto* integer = std::get_if<std::int64_t>(&from.value)) return static_cast<double>(*integer);
  return std::get<double>(from.value);
}

/// The tensor as it is written: on the CPU, with a storage that holds its elements only.
at::Tensor to_write(const at::Tensor& from) {
  auto to = from.detach().cpu();
  return !to.has_storage() || to.storage().nbytes() == to.nbytes() ? to : to.clone();
}

void write_named(torch::serialize::OutputArchive& to, const char* names_key, const char* values_key, const named_tensors& all) {
  string_list names;
  std::vector<at::Tensor> values;
  for (const auto& [name, value] : all) {
    names.push_back(name);
    values.push_back(to_write(value));
  }
  to.write(names_key, c10::IValue(names));
  to.write(values_key, c10::IValue(values));
}

named_tensors read_named(const part_archive& from, const char* names_key, const char* values_key) {
  auto names = from.value<string_list>(names_key);
  auto values = from.value<std::vector<at::Tensor>>(values_key);
  TORCH_CHECK(names.size() == values.size(), "it has ", names.size(), " ", names_key, " for ", values.size(), " ", values_key);
  named_tensors all;
  for (std::size_t i = 0; i < names.size(); ++i) all.emplace_back(std::move(names[i]), std::move(values[i]));
  return all;
}

void write_options(torch::serialize::OutputArchive& to, const checkpoint_part& part) {
  string_list names;
  std::vector<double> numbers;
  std::vector<bool> flags;
  std::vector<std::int64_t> counts;
  const auto add = [&](const attributes& options) {
    for (const auto& [name, value] : options) {
      names.push_back(name);
      numbers.push_back(to_number(value));
      flags.push_back(std::holds_alternative<bool>(value.value));
    }
    counts.push_back(static_cast<std::int64_t>(options.size()));
  };
  add(part.options);
  for (const auto& each : part.further) add(each);
  to.write("option_names", c10::IValue(names));
  to.write("option_values", c10::IValue(numbers));
  to.write("option_flags", c10::IValue(flags));
  if (part.further.empty()) return;
  to.write("option_counts", c10::IValue(counts));
  to.write("groups", c10::IValue(part.groups));
}

/// Reads the options, and the groups of the parameters, which are read already.
void read_options(const part_archive& from, std::int64_t version, checkpoint_part& part) {
  const auto names = from.value<string_list>("option_names");
  const auto numbers = from.value<std::vector<double>>("option_values");
  const auto flags = from.value<std::vector<bool>>("option_flags");
  TORCH_CHECK(names.size() == numbers.size() && names.size() == flags.size(), "its options do not fit together");
  std::vector<std::int64_t> counts{static_cast<std::int64_t>(names.size())};
  if (version == version_with_groups) {
    counts = from.value<std::vector<std::int64_t>>("option_counts");
    part.groups = from.value<std::vector<std::int64_t>>("groups");
    const auto last = static_cast<std::int64_t>(counts.size());
    TORCH_CHECK(part.groups.size() == part.parameters.size() &&
                  std::all_of(part.groups.begin(), part.groups.end(), [&](auto group) { return group >= 0 && group < last; }),
                "its parameter groups do not fit its parameters");
  }
  std::vector<attributes> all;
  std::size_t i = 0;
  for (const auto count : counts) {
    TORCH_CHECK(count >= 0 && static_cast<std::uint64_t>(count) <= names.size() - i,
                "its options do not fit its parameter groups");
    auto& options = all.emplace_back();
    for (const auto end = i + static_cast<std::size_t>(count); i < end; ++i)
      options.emplace(names[i], flags[i] ? attribute(numbers[i] != 0) : attribute(numbers[i]));
  }
  TORCH_CHECK(!all.empty() && i == names.size(), "its options do not fit its parameter groups");
  part.options = std::move(all.front());
  part.further.assign(all.begin() + 1, all.end());
}

void write_states(torch::serialize::OutputArchive& to, const std::vector<parameter_state>& states, std::size_t slots) {
  std::vector<std::int64_t> steps;
  std::vector<at::Tensor> tensors;
  std::vector<bool> kept;
  for (const auto& state : states) {
    steps.push_back(state.present ? state.step : unseen);
    for (std::size_t i = 0; i < slots; ++i) {
      const bool there = state.present && state.slots[i].defined();
      kept.push_back(there);
      tensors.push_back(there ? to_write(state.slots[i]) : at::empty({0}));
    }
  }
  to.write("steps", c10::IValue(steps));
  to.write("slots", c10::IValue(tensors));
  to.write("slots_kept", c10::IValue(kept));
}

std::vector<parameter_state> read_states(const part_archive& from, std::size_t parameters, std::size_t slots) {
  const auto steps = from.value<std::vector<std::int64_t>>("steps");
  const auto tensors = from.value<std::vector<at::Tensor>>("slots");
  const auto kept = from.value<std::vector<bool>>("slots_kept");
  TORCH_CHECK(steps.size() == parameters && tensors.size() == parameters * slots && kept.size() == tensors.size(),
              "its optimizer states do not fit its parameters");
  std::vector<parameter_state> states(parameters);
  for (std::size_t p = 0; p < parameters; ++p) {
    states[p].present = steps[p] != unseen;
    states[p].step = states[p].present ? steps[p] : 0;
    for (std::size_t i = p * slots; i < (p + 1) * slots; ++i) states[p].slots.push_back(kept[i] ? tensors[i] : at::Tensor());
  }
  return states;
}

torch::serialize::OutputArchive archive_of(const checkpoint_part& part) {
  torch::serialize::OutputArchive to;
  // Programs that read version 2 alone read every part with one group.
  to.write("version", c10::IValue(part.further.empty() ? version_of_one_group : version_with_groups));
  to.write("node", c10::IValue(part.node));
  to.write("save", c10::IValue(part.save));
  to.write("optimizer", c10::IValue(part.optimizer));
  write_options(to, part);
  write_named(to, "names", "values", part.parameters);
  write_states(to, part.states, optimizer_kind::find(part.optimizer).slots().size());
  write_named(to, "buffer_names", "buffers", part.buffers);
  to.write("random", c10::IValue(part.random.defined() ? part.random : at::empty({0}, at::kByte)));
  return to;
}

checkpoint_part part_of(const part_archive& from, const std::string& save) {
  const auto version = from.value<std::int64_t>("version");
  TORCH_CHECK(version >= version_without_buffers && version <= version_with_groups, "it has format ", version,
              "; this program reads formats ", version_without_buffers, " to ", version_with_groups);
  checkpoint_part part;
  part.node = from.value<std::string>("node");
  part.save = from.value<std::string>("save");
  TORCH_CHECK(part.save == save, "it belongs to save ", part.save, ", not ", save);
  part.optimizer = from.value<std::string>("optimizer");
  part.parameters = read_named(from, "names", "values");
  read_options(from, version, part);
  part.states = read_states(from, part.parameters.size(), optimizer_kind::find(part.optimizer).slots().size());
  if (version == version_without_buffers) return part;
  part.buffers = read_named(from, "buffer_names", "buffers");
  if (auto random = from.value<at::Tensor>("random"); random.numel() > 0) {
    check_random_state(random);
    part.random = std::move(random);
  }
  return part;
}

/// Reads a part whose file has the digest `found`.
checkpoint_part checked_part(const std::string& path, const support::file_digest& found, const support::file_digest& expected,
                             const std::string& save, part_archive::reader read) {
  expect_digest(path, found, expected);
  try {
    return part_of({std::move(read), static_cast<std::size_t>(found.bytes)}, save);
  } catch (const error&) {
    throw;
  } catch (const std::exception& failed) {
    throw error(errc::function_failed, "'" + path + "' is not a checkpoint of troupe: " + support::text_of(failed));
  }
}

/// Bytes that come one after the other. `expected`: about how many come.
class byte_sink {
 public:
  explicit byte_sink(std::size_t expected) : bytes_(at::empty({static_cast<std::int64_t>(expected)}, at::kByte)) {}

  void write(const void* data, std::size_t size) {
    if (size == 0) return;  // `data` may be null then
    const auto room = static_cast<std::size_t>(bytes_.numel());
    if (room - size_ < size) bytes_.resize_({static_cast<std::int64_t>(std::max(room * 2, size_ + size))});
    std::memcpy(bytes_.mutable_data_ptr<std::uint8_t>() + size_, data, size);
    size_ += size;
  }
  at::Tensor take() { return bytes_.narrow(0, 0, static_cast<std::int64_t>(size_)); }

 private:
  at::Tensor bytes_;
  std::size_t size_ = 0;
};

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
  constexpr std::uint64_t around_a_tensor = 1024;  // its name, its headers, and the padding before its elements
  constexpr std::uint64_t around_a_part = std::uint64_t{1} << 16;
  std::uint64_t bytes = around_a_part;
  const auto add = [&](const at::Tensor& one) {
    if (one.defined()) bytes += around_a_tensor + one.nbytes();
  };
  const auto slots = optimizer_kind::find(part.optimizer).slots().size();
  for (std::size_t i = 0; i < part.parameters.size(); ++i) {
    const auto& parameter = part.parameters[i].second;
    add(parameter);
    // A parameter that was not stepped yet will have every slot later.
    for (std::size_t s = 0; s < slots; ++s) add(part.states[i].present ? part.states[i].slots[s] : parameter);
  }
  for (const auto& [name, tensor] : part.buffers) add(tensor);
  add(part.random);
  return bytes;
}

support::file_digest write_part(const support::file_place& place, const checkpoint_part& part) {
  auto archive = archive_of(part);
  support::durable_file file(place);
  try {
    archive.save_to([&file](const void* data, std::size_t size) {
      file.write(data, size);
      return size;  // commit() reports a failure: libtorch's writer does not allow exceptions here
    });
  } catch (const c10::Error& failed) {
    throw error(errc::function_failed, "can't write '" + place.text() + "': " + failed.what_without_backtrace());
  }
  return file.commit();
}

checkpoint_part read_part(const support::file_place& place, const support::file_digest& expected, const std::string& save) {
  const auto file = place.read();
  const auto found = support::file_digest::of(file, place.text(), expected.kind);
  const auto read = [&](std::uint64_t position, void* to, std::size_t size) {
    std::size_t got = 0;
    while (got < size) {
      const ssize_t more = ::pread(file.get(), static_cast<char*>(to) + got, size - got, static_cast<off_t>(position + got));
      if (more < 0 && errno == EINTR) continue;
      if (more <= 0) break;  // the archive refuses what is too short
      got += static_cast<std::size_t>(more);
    }
    return got;
  };
  return checked_part(place.text(), found, expected, save, read);
}

at::Tensor part_bytes(const checkpoint_part& part) {
  auto archive = archive_of(part);
  byte_sink bytes(estimated_bytes(part));
  archive.save_to([&bytes](const void* data, std::size_t size) {
    bytes.write(data, size);
    return size;
  });
  return bytes.take();
}

support::file_digest digest_of(const at::Tensor& bytes, support::checksum_kind kind) {
  support::checksum sum(kind);
  sum.update(bytes.const_data_ptr(), bytes.nbytes());
  return {bytes.nbytes(), sum.value(), kind};
}

checkpoint_part parse_part(const at::Tensor& bytes, const std::string& path, const support::file_digest& expected,
                           const std::string& save) {
  const auto* all = static_cast<const char*>(bytes.const_data_ptr());
  const auto read = [&](std::uint64_t position, void* to, std::size_t size) {
    const auto got = std::min<std::uint64_t>(size, bytes.nbytes() - std::min<std::uint64_t>(position, bytes.nbytes()));
    if (got > 0) std::memcpy(to, all + position, got);
    return static_cast<std::size_t>(got);
  };
  return checked_part(path, digest_of(bytes, expected.kind), expected, save, read);
}

}  // namespace troupe::objects
