// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/objects/part_archive.hpp>

#include <cstring>
#include <filesystem>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <ATen/ATen.h>
#include <caffe2/serialize/inline_container.h>
#include <torch/script.h>
#include <torch/serialize/output-archive.h>

#include <actors/objects/archive_of_two_lists.hpp>
#include <actors/temporary_folder.hpp>
#include <troupe/actors/objects/checkpoint.hpp>
#include <troupe/messages/errors.hpp>

using namespace troupe;
using namespace troupe::test;

namespace {

objects::part_archive archive_of(const std::string& bytes) {
  return {[&](std::uint64_t position, void* to, std::size_t size) {
            const auto got = std::min(size, bytes.size() - std::min<std::size_t>(position, bytes.size()));
            std::memcpy(to, bytes.data() + position, got);
            return got;
          },
          bytes.size()};
}

std::string saved(const torch::jit::Module& script) {
  std::ostringstream out;
  script.save(out);
  return out.str();
}

at::Tensor tensor_of(const std::string& bytes) {
  auto result = at::empty({static_cast<std::int64_t>(bytes.size())}, at::kByte);
  std::memcpy(result.mutable_data_ptr(), bytes.data(), bytes.size());
  return result;
}

/// An archive whose values are this pickle.
std::string archive_with(const std::string& pickle) {
  std::string bytes;
  caffe2::serialize::PyTorchStreamWriter writer([&](const void* data, std::size_t size) {
    bytes.append(static_cast<const char*>(data), size);
    return size;
  });
  writer.writeRecord("data.pkl", pickle.data(), pickle.size());
  writer.writeEndOfFile();
  return bytes;
}

/// A module that makes the file at `path` when it is loaded, as libtorch does it.
std::string loads_with_effect(const std::string& name, const std::string& path) {
  torch::jit::Module script(name);
  script.register_attribute("version", c10::IntType::get(), std::int64_t{2});
  script.define(
    "def __getstate__(self):\n    return {'version': 2}\n"
    "def __setstate__(self, state: Dict[str, int]):\n    self.version = torch.from_file('" +
    path + "', True, 4).numel()\n");
  return saved(script);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(archives_of_parts)

// libtorch reads past the end of the memory of such a tensor.
BOOST_AUTO_TEST_CASE(a_tensor_that_claims_more_than_came_is_refused) {  // PV-2
  torch::serialize::OutputArchive to;
  to.write("tensors", c10::IValue(std::vector<at::Tensor>{at::arange(300)}));
  std::ostringstream out;
  to.save_to(out);
  const auto honest = out.str();
  std::istringstream in(honest);
  caffe2::serialize::PyTorchStreamReader records(&in);
  const auto record = [&](const std::string& name) {
    const auto [data, size] = records.getRecord(name);
    return std::string(static_cast<const char*>(data.get()), size);
  };
  const auto forged = [&](const std::string& pickle, const std::string& elements) {
    std::string bytes;
    caffe2::serialize::PyTorchStreamWriter writer([&](const void* data, std::size_t size) {
      if (size > 0) bytes.append(static_cast<const char*>(data), size);
      return size;
    });
    writer.writeRecord("data.pkl", pickle.data(), pickle.size());
    writer.writeRecord("data/0", elements.data(), elements.size());
    writer.writeEndOfFile();
    return bytes;
  };
  const auto pickle = record("data.pkl");
  const auto elements = record("data/0");
  BOOST_TEST(archive_of(forged(pickle, elements)).value<std::vector<at::Tensor>>("tensors").front().equal(at::arange(300)));
  const auto refusal = [](const std::string& bytes) { return text_of<c10::Error>([&] { archive_of(bytes); }); };
  BOOST_TEST(contains(refusal(forged(pickle, elements.substr(0, 8))), "and not all of its elements"));
  // 300 stands in the pickle as the length of the storage, then as the size of the tensor.
  const std::string number("M\x2c\x01", 3);
  auto large = pickle;
  const auto at = large.rfind(number);
  BOOST_TEST_REQUIRE(at != std::string::npos);
  large.replace(at, 3, "M\xff\xff");
  BOOST_TEST(contains(refusal(forged(large, elements)), "it holds a tensor of [65535], and not all of its elements"));
}

BOOST_AUTO_TEST_CASE(an_archive_that_unpacks_to_much_more_than_it_has_is_refused) {  // PV-3
  const auto with_zeros = [](std::size_t count) {
    std::string bytes;
    caffe2::serialize::PyTorchStreamWriter writer([&](const void* data, std::size_t size) {
      if (size > 0) bytes.append(static_cast<const char*>(data), size);
      return size;
    });
    const std::string zeros(count, '\0');
    writer.writeRecord("data.pkl", "x", 1);
    writer.writeRecord("data/0", zeros.data(), zeros.size(), true);
    writer.writeEndOfFile();
    return bytes;
  };
  const auto refusal = [](const std::string& bytes) { return text_of<std::exception>([&] { archive_of(bytes); }); };
  const std::string why = "its records are together much larger than the archive";
  const auto large = with_zeros(std::size_t{64} << 20);
  BOOST_TEST(large.size() < std::size_t{1} << 20);
  BOOST_TEST(contains(refusal(large), why));
  BOOST_TEST(!contains(refusal(with_zeros(10'000)), why));
  // Damaged archives: nothing is read beyond their end.
  torch::serialize::OutputArchive to;
  to.write("number", c10::IValue(std::int64_t{7}));
  std::ostringstream out;
  to.save_to(out);
  const auto honest = out.str();
  BOOST_TEST(archive_of(honest).value<std::int64_t>("number") == 7);
  for (std::size_t size = 0; size < honest.size(); size += 7)
    BOOST_CHECK_THROW(archive_of(honest.substr(0, size)), std::exception);
}

// The list that is looked through has to be the one that libtorch goes by.
BOOST_AUTO_TEST_CASE(an_archive_with_two_lists_of_records_is_refused) {  // PV-3
  constexpr std::size_t zeros = std::size_t{64} << 20;
  const auto two_faced = archive_of_two_lists(zeros);
  std::istringstream in(two_faced);
  caffe2::serialize::PyTorchStreamReader records(&in);
  const auto size = std::get<1>(records.getRecord("data/0"));
  BOOST_TEST(size == zeros);  // libtorch unpacks it: the test can fail
  BOOST_TEST(two_faced.size() < std::size_t{1} << 20);
  const auto why = text_of<std::exception>([&] { archive_of(two_faced); });
  BOOST_TEST(contains(why, "it has two lists of its records"), why);
}

// Each reading takes the memory of the record again.
BOOST_AUTO_TEST_CASE(a_record_is_read_once) {  // PV-4
  const auto shared = at::arange(300);
  torch::serialize::OutputArchive to;
  to.write("tensors", c10::IValue(std::vector<at::Tensor>{shared, shared.slice(0, 100), shared}));
  std::ostringstream out;
  to.save_to(out);
  const auto honest = out.str();
  const auto tensors = archive_of(honest).value<std::vector<at::Tensor>>("tensors");
  BOOST_TEST(tensors[1].equal(at::arange(100, 300)));
  std::istringstream in(honest);
  caffe2::serialize::PyTorchStreamReader records(&in);
  const auto [data, size] = records.getRecord("data.pkl");
  std::string pickle(static_cast<const char*>(data.get()), size);
  // Before the end of the pickle: the first storage once more, in place of what was memoized.
  const auto from = pickle.find("(X\7\0\0\0storage", 0, 13);
  const auto to_here = pickle.find("tQ", from) + 2;
  BOOST_TEST_REQUIRE((from != std::string::npos && to_here > from));
  auto again = pickle.substr(from, to_here - from);
  for (auto put = again.find('q'); put != std::string::npos; put = again.find('q')) again.erase(put, 2);
  std::string twice = "\x80\2(" + again + again + "t.";
  std::string bytes;
  caffe2::serialize::PyTorchStreamWriter writer([&](const void* part, std::size_t count) {
    if (count > 0) bytes.append(static_cast<const char*>(part), count);
    return count;
  });
  const auto [elements, count] = records.getRecord("data/0");
  writer.writeRecord("data.pkl", twice.data(), twice.size());
  writer.writeRecord("data/0", elements.get(), count);
  writer.writeEndOfFile();
  const auto why = text_of<std::exception>([&] { archive_of(bytes); });
  BOOST_TEST(contains(why, "it reads the record 0 twice"), why);
}

BOOST_AUTO_TEST_CASE(the_values_come_back_as_they_were_written) {
  torch::serialize::OutputArchive to;
  to.write("number", c10::IValue(std::int64_t{7}));
  to.write("texts", c10::IValue(std::vector<std::string>{"a", "b"}));
  to.write("flags", c10::IValue(std::vector<bool>{true, false}));
  to.write("reals", c10::IValue(std::vector<double>{0.5}));
  to.write("tensors", c10::IValue(std::vector<at::Tensor>{at::arange(3), at::ones({2, 2})}));
  to.write("none", c10::IValue(std::vector<std::int64_t>{}));
  std::ostringstream out;
  to.save_to(out);
  const auto bytes = out.str();
  const auto from = archive_of(bytes);
  BOOST_TEST(from.value<std::int64_t>("number") == 7);
  BOOST_TEST((from.value<std::vector<std::string>>("texts") == std::vector<std::string>{"a", "b"}));
  BOOST_TEST((from.value<std::vector<bool>>("flags") == std::vector<bool>{true, false}));
  BOOST_TEST((from.value<std::vector<double>>("reals") == std::vector<double>{0.5}));
  BOOST_TEST(from.value<std::vector<std::int64_t>>("none").empty());
  const auto tensors = from.value<std::vector<at::Tensor>>("tensors");
  BOOST_REQUIRE(tensors.size() == 2u);
  BOOST_TEST(at::equal(tensors[0], at::arange(3)));
  BOOST_TEST(contains(text_of<std::exception>([&] { from.value<std::int64_t>("other"); }), "no value 'other'"));
  BOOST_CHECK_THROW(from.value<std::string>("number"), std::exception);
}

BOOST_AUTO_TEST_CASE(no_code_of_an_archive_runs) {  // PV-1
  temporary_folder folder;
  const auto file = folder / "made by code";
  for (const std::string name : {"Module", "other"}) {
    const auto bytes = loads_with_effect(name, file);
    std::istringstream in(bytes);
    torch::jit::load(in);
    BOOST_REQUIRE(std::filesystem::remove(file));  // libtorch runs the code: the test can fail
    BOOST_CHECK_THROW(archive_of(bytes).value<at::Tensor>("values"), std::exception);
    const auto part = tensor_of(bytes);
    BOOST_TEST(
      contains(text_of<error>([&] { objects::parse_part(part, "a.pt", objects::digest_of(part), "0123456789abcdef"); }),
               "'a.pt' is not a checkpoint of troupe"));
    write_text(folder / "a.pt", bytes);
    BOOST_CHECK_THROW(objects::read_part(folder / "a.pt", objects::digest_of(part), "0123456789abcdef"), error);
    BOOST_TEST(!std::filesystem::exists(file));
  }
}

BOOST_AUTO_TEST_CASE(an_object_in_an_object_is_refused) {  // PV-1
  torch::serialize::OutputArchive whole;
  torch::serialize::OutputArchive part;
  part.write("number", c10::IValue(std::int64_t{7}));
  whole.write("part", part);
  whole.write("number", c10::IValue(std::int64_t{8}));
  std::ostringstream out;
  whole.save_to(out);
  const auto nested = out.str();
  BOOST_CHECK_THROW(archive_of(nested), std::exception);
  torch::jit::Module outer("Module");
  outer.register_module("inner", torch::jit::Module("Module"));
  const auto same = saved(outer);
  BOOST_CHECK_THROW(archive_of(same), std::exception);
  torch::jit::Module with_other("Module");
  with_other.register_module("inner", torch::jit::Module("other"));
  const auto other = saved(with_other);
  BOOST_TEST(contains(text_of<std::exception>([&] { archive_of(other); }), "it holds the type __torch__.other"));
}

BOOST_AUTO_TEST_CASE(pickles_that_libtorch_does_not_write_are_refused) {  // PV-1
  const std::string module(
    "\x80\x02"
    "c__torch__\nModule\nq\0",
    22);
  const std::string again("h\0)\x81}b", 6);  // another object of the class, without values
  const std::string key("X\1\0\0\0k", 6);
  const auto archive = [&](const std::string& rest) { return archive_with(module + rest); };
  const auto plain = archive(")\x81}(" + key + "K\7ub.");
  BOOST_TEST(archive_of(plain).value<std::int64_t>("k") == 7);
  const auto nested = archive(")\x81}(" + key + again + "ub.");
  BOOST_TEST(contains(text_of<std::exception>([&] { archive_of(nested); }), "more than one object"));
  const auto of_a_number = archive(")\x81K\7b.");
  BOOST_TEST(contains(text_of<std::exception>([&] { archive_of(of_a_number); }), "more than one object"));
  const auto none = archive_with("\x80\2K\7.");
  BOOST_TEST(contains(text_of<std::exception>([&] { archive_of(none); }), "it holds no values"));
}

// libtorch overflows the stack when it frees such values, and takes 64 GiB for such a number.
BOOST_AUTO_TEST_CASE(a_pickle_that_would_end_the_process_is_refused) {  // PV-5
  const auto deep = archive_with("\x80\2K\7" + std::string(1'000'000, '\x85') + ".");
  BOOST_TEST(contains(text_of<std::exception>([&] { archive_of(deep); }), "nests values"));
  const auto large = archive_with("\x80\2K\7r\xff\xff\xff\xff.");
  BOOST_TEST(contains(text_of<std::exception>([&] { archive_of(large); }), "under the number 4294967295"));
}

BOOST_AUTO_TEST_CASE(bytes_that_are_no_archive_are_refused) {
  torch::serialize::OutputArchive to;
  to.write("number", c10::IValue(std::int64_t{7}));
  std::ostringstream out;
  to.save_to(out);
  const auto whole = out.str();
  for (std::size_t size = 0; size < whole.size(); size += 13) {
    const auto cut = whole.substr(0, size);
    BOOST_CHECK_THROW(archive_of(cut), std::exception);
  }
}

BOOST_AUTO_TEST_SUITE_END()
