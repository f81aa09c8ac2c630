// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/objects/safetensors.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <functional>
#include <new>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/EmptyTensor.h>
#include <ATen/ops/empty.h>
#include <nlohmann/json.hpp>

#include <troupe/actors/support/strict_json.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/tensor_rules.hpp>

namespace troupe::objects {

namespace {

using nlohmann::json;
using support::fail_at;
using support::shown;

static_assert(std::endian::native == std::endian::little, "the files have the lowest byte of a number first");

constexpr auto metadata_name = "__metadata__";
constexpr std::size_t length_bytes = 8;
constexpr std::size_t most_nested = 3;  // the header, a tensor, its shape

constexpr std::array<std::pair<at::ScalarType, const char*>, 19> dtypes{{
  {at::kBool, "BOOL"},
  {at::kByte, "U8"},
  {at::kChar, "I8"},
  {at::kShort, "I16"},
  {at::kInt, "I32"},
  {at::kLong, "I64"},
  {at::kUInt16, "U16"},
  {at::kUInt32, "U32"},
  {at::kUInt64, "U64"},
  {at::kHalf, "F16"},
  {at::kBFloat16, "BF16"},
  {at::kFloat, "F32"},
  {at::kDouble, "F64"},
  {at::kComplexFloat, "C64"},
  {at::kFloat8_e5m2, "F8_E5M2"},
  {at::kFloat8_e4m3fn, "F8_E4M3"},
  {at::kFloat8_e5m2fnuz, "F8_E5M2FNUZ"},
  {at::kFloat8_e4m3fnuz, "F8_E4M3FNUZ"},
  {at::kFloat8_e8m0fnu, "F8_E8M0"},
}};

const char* dtype_name(const std::string& name, const at::Tensor& tensor) {
  const auto refuse = [&](const std::string& why) { throw error(errc::misuse, "can't write tensor '" + name + "': " + why); };
  if (!tensor.defined()) refuse("it is undefined");
  if (tensor.is_nested() || tensor.layout() != at::kStrided)
    refuse("expected a dense tensor, got " + describe(tensor) + "; call to_dense()");
  const auto bytes =
    at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.itemsize(), tensor.storage_offset());
  if (tensor.is_meta() || tensor._is_zerotensor() || !tensor.has_storage() || tensor.storage().nbytes() < bytes)
    refuse("it has less memory than its shape says: it is on device meta, or was resized or freed");
  for (const auto& [dtype, text] : dtypes)
    if (dtype == tensor.scalar_type()) return text;
  refuse("safetensors has no dtype for " + describe(tensor) + "; convert the tensor, for example with at::view_as_real");
  return nullptr;
}

[[noreturn]] void cannot_read(const std::string& path, const std::string& why) {
  throw error(errc::function_failed, "can't read '" + path + "': " + why);
}

/// Reads up to `size` bytes of a file from `position` on. Returns how many came.
using byte_reader = std::function<std::size_t(std::uint64_t position, void* to, std::size_t size)>;

struct entry {
  std::string name;
  at::ScalarType dtype;
  std::vector<std::int64_t> shape;
  std::uint64_t begin;
  std::uint64_t end;
};

std::vector<std::uint64_t> numbers_of(const json& list, const std::string& where) {
  const auto is_number = [](const json& each) { return each.is_number_unsigned(); };
  if (!list.is_array() || list.size() > max_tensor_dimensions || !std::all_of(list.begin(), list.end(), is_number))
    fail_at(where, "expected a list of whole numbers from 0 on, got " + shown(list));
  return list.get<std::vector<std::uint64_t>>();
}

at::ScalarType dtype_of(const json& text, const std::string& where) {
  for (const auto& [dtype, name] : dtypes)
    if (text == name) return dtype;
  fail_at(where, "expected a dtype such as \"F32\", got " + shown(text));
}

entry entry_of(const std::string& name, const json& from) {
  const auto where = "tensor '" + name + "'";
  if (!from.is_object() || from.size() != 3 || !from.contains("dtype") || !from.contains("shape") ||
      !from.contains("data_offsets"))
    fail_at(where, R"(expected {"dtype", "shape", "data_offsets"}, got )" + shown(from));
  const auto shape = numbers_of(from["shape"], where + ", shape");
  const auto offsets = numbers_of(from["data_offsets"], where + ", data_offsets");
  entry result{name, dtype_of(from["dtype"], where + ", dtype"), {shape.begin(), shape.end()}, 0, 0};
  if (!shape_travels(result.shape)) fail_at(where, "expected a shape that fits into memory, got " + shown(from["shape"]));
  auto bytes = std::uint64_t{c10::elementSize(result.dtype)};
  for (const auto size : shape) bytes *= size;
  if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] - offsets[0] != bytes)
    fail_at(where, "expected the offsets of " + std::to_string(bytes) + " bytes, which its shape and dtype have, got " +
                     shown(from["data_offsets"]));
  std::tie(result.begin, result.end) = std::pair(offsets[0], offsets[1]);
  return result;
}

texts_by_name texts_of(const json& from) {
  const auto is_text = [](const json& each) { return each.is_string(); };
  if (!from.is_object() || !std::all_of(from.begin(), from.end(), is_text))
    fail_at(metadata_name, "expected an object of texts, got " + shown(from));
  return from.get<texts_by_name>();
}

void read_all(const byte_reader& read, std::uint64_t position, void* to, std::size_t size) {
  if (size > 0 && read(position, to, size) != size) fail_at("the file", "it ends early");
}

// Another byte would be undefined behaviour in every kernel.
void check_bools(const std::string& name, const at::Tensor& tensor) {
  const auto* bytes = static_cast<const unsigned char*>(tensor.const_data_ptr());
  if (std::any_of(bytes, bytes + tensor.nbytes(), [](unsigned char each) { return each > 1; }))
    fail_at("tensor '" + name + "'", "expected bytes 0 and 1 of BOOL, got others");
}

at::Tensor empty_tensor(const entry& each) {
  try {
    return at::empty(each.shape, each.dtype);
  } catch (const c10::Error&) {  // libtorch's own exception for memory that is not there
    throw std::bad_alloc();
  }
}

json header_of(const byte_reader& read, std::uint64_t size, std::uint64_t& length) {
  if (size < length_bytes) fail_at("the file", "expected at least 8 bytes, got " + std::to_string(size));
  read_all(read, 0, &length, length_bytes);
  if (length > size - length_bytes || length > most_header_bytes)
    fail_at("the file", "expected a header of at most " + std::to_string(std::min(size - length_bytes, most_header_bytes)) +
                          " bytes, got the length " + std::to_string(length));
  std::string text(length, '\0');
  read_all(read, length_bytes, text.data(), text.size());
  auto header = support::parse_strictly(text, "the header", most_nested);
  if (!header.is_object()) fail_at("the header", "expected an object, got " + shown(header));
  return header;
}

tensor_file read_from(const byte_reader& read, std::uint64_t size, const std::string& path) try {
  std::uint64_t length = 0;
  const auto header = header_of(read, size, length);
  tensor_file result;
  std::vector<entry> entries;
  for (const auto& [name, value] : header.items())
    if (name == metadata_name)
      result.metadata = texts_of(value);
    else
      entries.push_back(entry_of(name, value));
  std::stable_sort(entries.begin(), entries.end(), [](const entry& one, const entry& other) {
    return std::tie(one.begin, one.end) < std::tie(other.begin, other.end);
  });
  const auto start = length_bytes + length;
  std::uint64_t covered = 0;
  for (const auto& each : entries) {
    if (each.begin != covered)
      fail_at("tensor '" + each.name + "'", "expected its bytes from " + std::to_string(covered) + " on, got " +
                                              std::to_string(each.begin) + ": there is a gap or an overlap");
    covered = each.end;
  }
  if (covered != size - start)
    fail_at("the file", "expected " + std::to_string(covered) + " bytes of elements, got " + std::to_string(size - start));
  for (auto& each : entries) {
    auto tensor = empty_tensor(each);
    read_all(read, start + each.begin, tensor.mutable_data_ptr(), tensor.nbytes());
    if (each.dtype == at::kBool) check_bools(each.name, tensor);
    result.tensors.emplace_back(std::move(each.name), std::move(tensor));
  }
  return result;
} catch (const std::bad_alloc&) {
  cannot_read(path, "there is too little memory for its " + std::to_string(size) + " bytes");
}

}  // namespace

tensor_writer::tensor_writer(named_tensors tensors, const texts_by_name& metadata) : tensors_(std::move(tensors)) {
  for (const auto& [name, tensor] : tensors_) dtype_name(name, tensor);
  std::stable_sort(tensors_.begin(), tensors_.end(),
                   [](const auto& one, const auto& other) { return one.second.itemsize() > other.second.itemsize(); });
  auto header = json::object();
  if (!metadata.empty()) header[metadata_name] = metadata;
  for (const auto& [name, tensor] : tensors_) {
    const auto begin = std::exchange(element_bytes_, element_bytes_ + tensor.nbytes());
    json entry{{"dtype", dtype_name(name, tensor)}, {"shape", tensor.sizes().vec()}, {"data_offsets", {begin, element_bytes_}}};
    if (name == metadata_name || !header.emplace(name, std::move(entry)).second)
      throw error(errc::misuse, "can't write two tensors called '" + name + "', or one called '" + metadata_name + "'");
  }
  try {
    header_ = header.dump();
  } catch (const json::type_error&) {
    throw error(errc::misuse, "can't write tensors whose names are not UTF-8");
  }
  header_.resize((header_.size() + length_bytes - 1) / length_bytes * length_bytes, ' ');
  if (header_.size() > most_header_bytes)
    throw error(errc::misuse, "can't write " + std::to_string(tensors_.size()) +
                                " tensors to one file: their names and shapes take " + std::to_string(header_.size()) +
                                " bytes, at most " + std::to_string(most_header_bytes) + " are possible");
}

void tensor_writer::write(const std::function<void(const void* data, std::size_t size)>& sink) const {
  const std::uint64_t length = header_.size();
  sink(&length, length_bytes);
  sink(header_.data(), header_.size());
  for (const auto& [name, tensor] : tensors_) {
    const auto plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous();
    if (plain.numel() > 0) sink(plain.const_data_ptr(), plain.nbytes());
  }
}

tensor_file read_tensors(const support::owned_descriptor& file, const std::string& path) {
  struct stat about {};
  if (::fstat(file.get(), &about) != 0) cannot_read(path, std::generic_category().message(errno));
  const auto read = [&](std::uint64_t position, void* to, std::size_t size) {
    std::size_t got = 0;
    while (got < size) {
      const ssize_t more = ::pread(file.get(), static_cast<char*>(to) + got, size - got, static_cast<off_t>(position + got));
      if (more < 0 && errno == EINTR) continue;
      if (more < 0) cannot_read(path, std::generic_category().message(errno));
      if (more == 0) break;
      got += static_cast<std::size_t>(more);
    }
    return got;
  };
  return read_from(read, static_cast<std::uint64_t>(about.st_size), path);
}

tensor_file read_tensors(const at::Tensor& bytes, const std::string& path) {
  const auto read = [&](std::uint64_t position, void* to, std::size_t size) {
    std::memcpy(to, static_cast<const char*>(bytes.const_data_ptr()) + position, size);
    return size;
  };
  return read_from(read, bytes.nbytes(), path);
}

}  // namespace troupe::objects
