// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/objects/part_archive.hpp>

#include <algorithm>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <ATen/core/jit_type.h>
#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/csrc/jit/serialization/unpickler.h>

#include <troupe/actors/objects/plain_pickle.hpp>

namespace troupe::objects {

namespace {

constexpr auto class_of_archives = "__torch__.Module";

class bytes_of_part : public caffe2::serialize::ReadAdapterInterface {
 public:
  bytes_of_part(part_archive::reader read, std::size_t size) : read_(std::move(read)), size_(size) {}
  std::size_t size() const override { return size_; }
  std::size_t read(std::uint64_t position, void* to, std::size_t size, const char*) const override {
    return read_(position, to, size);
  }

 private:
  part_archive::reader read_;
  std::size_t size_;
};

/// The types of the lists in a part. libtorch's own parser of types would follow a text of any depth.
c10::TypePtr list_named(const std::string& name) {
  for (const auto& element :
       {c10::TypePtr(c10::StringType::get()), c10::TypePtr(c10::IntType::get()), c10::TypePtr(c10::FloatType::get()),
        c10::TypePtr(c10::BoolType::get()), c10::TypePtr(c10::TensorType::get())})
    if (auto list = c10::ListType::create(element); list->annotation_str() == name) return list;
  TORCH_CHECK(false, "it holds the type ", name, ", expected plain values");
}

/// The bytes of an archive (ZIP). Throws c10::Error for bytes that are not there.
class zip_bytes {
 public:
  zip_bytes(const part_archive::reader& read, std::size_t size) : read_(read), size_(size) {}

  std::size_t size() const noexcept { return size_; }

  std::string at(std::uint64_t position, std::size_t bytes) const {
    TORCH_CHECK(position <= size_ && bytes <= size_ - position, "it is no whole archive");
    std::string result(bytes, '\0');
    TORCH_CHECK(read_(position, result.data(), bytes) == bytes, "it is no whole archive");
    return result;
  }

 private:
  const part_archive::reader& read_;
  const std::size_t size_;
};

/// A number of an archive: the lowest byte comes first.
std::uint64_t number_in(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint64_t result = 0;
  for (std::size_t i = size; i > 0; --i) result = result << 8 | static_cast<unsigned char>(bytes.at(at + i - 1));
  return result;
}

constexpr std::uint64_t in_64_bits = 0xFFFFFFFF;  // a field of 32 bits with this value has its value elsewhere

/// Where the list of the archive's records lies: position and bytes. An archive of more than 4 GiB has a second end with numbers of 64
/// bits (ZIP64), and a locator before its first end says where. libtorch goes by the second end whenever there is one.
std::pair<std::uint64_t, std::uint64_t> list_of_records(const zip_bytes& archive) {
  constexpr std::size_t end_bytes = 22;
  constexpr std::size_t locator_bytes = 20;
  constexpr std::size_t large_end_bytes = 56;
  constexpr std::size_t most_of_comment = 0xFFFF;
  const auto tail_bytes = std::min(archive.size(), end_bytes + most_of_comment);
  const auto tail = archive.at(archive.size() - tail_bytes, tail_bytes);
  auto end = tail.rfind("PK\5\6");
  while (end != std::string::npos && tail.size() - end < end_bytes)
    end = end == 0 ? std::string::npos : tail.rfind("PK\5\6", end - 1);
  TORCH_CHECK(end != std::string::npos && tail.size() - end >= end_bytes, "it is no archive");
  const auto bytes = number_in(tail, end + 12, 4);
  const auto position = number_in(tail, end + 16, 4);
  const auto before = archive.size() - tail_bytes + end;  // bytes before the end
  const auto locator = before < locator_bytes ? std::string() : archive.at(before - locator_bytes, locator_bytes);
  if (!locator.starts_with("PK\6\7")) {
    TORCH_CHECK(bytes != in_64_bits && position != in_64_bits, "it is no whole archive");
    return {position, bytes};
  }
  const auto large = archive.at(number_in(locator, 8, 8), large_end_bytes);
  TORCH_CHECK(large.starts_with("PK\6\6"), "it is no whole archive");
  const auto large_bytes = number_in(large, 40, 8);
  const auto large_position = number_in(large, 48, 8);
  TORCH_CHECK((bytes == in_64_bits || bytes == large_bytes) && (position == in_64_bits || position == large_position),
              "it has two lists of its records");
  return {large_position, large_bytes};
}

/// The size of a record in memory, in bytes. `entry`: the record's entry in the archive's list, without the name. `extra`: the entry's
/// further fields, which follow the name.
std::uint64_t bytes_of_record(std::string_view entry, std::string_view extra) {
  const auto bytes = number_in(entry, 24, 4);
  if (bytes != in_64_bits) return bytes;
  while (extra.size() >= 4) {
    const auto size = static_cast<std::size_t>(number_in(extra, 2, 2));
    TORCH_CHECK(extra.size() - 4 >= size, "it is no whole archive");
    if (number_in(extra, 0, 2) == 1) {
      TORCH_CHECK(size >= 8, "it is no whole archive");
      return number_in(extra, 4, 8);
    }
    extra.remove_prefix(4 + size);
  }
  TORCH_CHECK(false, "it is no whole archive");
}

/// Records of little text may be compressed, elements of tensors are not. So an archive that unpacks to much more than it has is one that
/// was made to fill memory.
void check_unpacked_size(const zip_bytes& archive) {
  constexpr std::size_t entry_bytes = 46;
  constexpr std::uint64_t most_times = 4;
  constexpr std::uint64_t least = std::uint64_t{1} << 20;
  const auto [position, bytes] = list_of_records(archive);
  const auto list = archive.at(position, bytes);
  const auto most = least + most_times * archive.size();
  std::uint64_t unpacked = 0;
  for (std::size_t at = 0; at < list.size();) {
    TORCH_CHECK(list.size() - at >= entry_bytes && list.compare(at, 4, "PK\1\2") == 0, "it is no whole archive");
    const auto entry = std::string_view(list).substr(at, entry_bytes);
    const auto name = static_cast<std::size_t>(number_in(entry, 28, 2));
    const auto extra = static_cast<std::size_t>(number_in(entry, 30, 2));
    const auto comment = static_cast<std::size_t>(number_in(entry, 32, 2));
    TORCH_CHECK(list.size() - at - entry_bytes >= name + extra + comment, "it is no whole archive");
    const auto record = bytes_of_record(entry, std::string_view(list).substr(at + entry_bytes + name, extra));
    TORCH_CHECK(record <= most - unpacked, "its records are together much larger than the archive");
    unpacked += record;
    at += entry_bytes + name + extra + comment;
  }
}

std::function<std::size_t(char*, std::size_t)> reader_of(std::string_view bytes) {
  return [left = bytes](char* to, std::size_t size) mutable {
    const auto got = left.copy(to, size);
    left.remove_prefix(got);
    return got;
  };
}

/// Whether all elements of the tensor lie in the record that was read for its storage. libtorch takes sizes, strides and the length of
/// the storage from the pickle, and looks at none of them.
bool lies_within(const at::Tensor& tensor, std::size_t record) {
  const auto sizes = tensor.sizes();
  const auto strides = tensor.strides();
  auto left =
    static_cast<std::int64_t>(record / tensor.itemsize()) - 1 - tensor.storage_offset();  // steps from the first element
  if (tensor.storage_offset() < 0) return false;
  bool is_empty = false;
  for (const auto size : sizes) {
    if (size < 0) return false;
    is_empty = is_empty || size == 0;
  }
  if (is_empty) return true;
  for (std::size_t i = 0; i < sizes.size() && left >= 0; ++i) {
    if (strides[i] < 0) return false;
    if (sizes[i] == 1 || strides[i] == 0) continue;
    left = strides[i] > left / (sizes[i] - 1) ? -1 : left - strides[i] * (sizes[i] - 1);
  }
  return left >= 0;
}

void check_tensors(const c10::IValue& value, const std::unordered_map<const void*, std::size_t>& records) {
  if (value.isTensor()) {
    const auto& tensor = value.toTensor();
    if (!tensor.defined()) return;
    TORCH_CHECK(tensor.layout() == at::kStrided && tensor.has_storage(), "it holds a tensor that is not dense");
    const auto found = records.find(tensor.storage().data());
    TORCH_CHECK(lies_within(tensor, found == records.end() ? 0 : found->second), "it holds a tensor of ", tensor.sizes(),
                ", and not all of its elements");
  } else if (value.isList()) {
    for (const c10::IValue& each : value.toListRef()) check_tensors(each, records);
  }
}

}  // namespace

part_archive::part_archive(reader read, std::size_t size) {
  check_unpacked_size({read, size});
  caffe2::serialize::PyTorchStreamReader records(std::make_shared<bytes_of_part>(std::move(read), size));
  const auto unit = std::make_shared<torch::jit::CompilationUnit>();
  const auto resolve = [&](const c10::QualifiedName& name) {
    if (name.qualifiedName() == class_of_archives)
      return c10::StrongTypePtr(unit, c10::ClassType::create(name, unit, /*is_module=*/true));
    return c10::StrongTypePtr(unit, list_named(name.qualifiedName()));
  };
  const auto load = [&](const c10::StrongTypePtr& type, const c10::IValue& state) {
    TORCH_CHECK(!values_ && state.isGenericDict() && type.type_->kind() == c10::TypeKind::ClassType,
                "it holds more than one object of plain values");
    values_ = state.toGenericDict();
    return c10::ivalue::Object::create(type, 0);
  };
  std::unordered_map<const void*, std::size_t> sizes;  // of the records of tensors, by where they are in memory
  std::unordered_set<std::string> read_already;
  const auto read_record = [&](const std::string& name) {
    TORCH_CHECK(read_already.insert(name).second, "it reads the record ", name, " twice");
    auto [data, bytes] = records.getRecord("data/" + name);
    sizes[data.get()] = bytes;
    return std::move(data);
  };
  const auto [pickle, pickle_bytes] = records.getRecord("data.pkl");
  const std::string_view pickled(static_cast<const char*>(pickle.get()), pickle_bytes);
  check_plain_pickle(pickled);
  torch::jit::Unpickler(reader_of(pickled), resolve, load, read_record, at::Device(at::kCPU)).parse_ivalue();
  TORCH_CHECK(values_, "it holds no values");
  for (const auto& each : *values_) check_tensors(each.value(), sizes);
}

c10::IValue part_archive::find(const std::string& name) const {
  const auto found = values_->find(name);
  TORCH_CHECK(found != values_->end(), "it has no value '", name, "'");
  return found->value();
}

}  // namespace troupe::objects
