// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/objects/safetensors.hpp>

#include <fcntl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <ATen/ATen.h>

#include <actors/temporary_folder.hpp>
#include <troupe/actors/state_file.hpp>
#include <troupe/messages/errors.hpp>

#include "support/forked_child.hpp"
#include "support/refused_calls.hpp"

using namespace troupe;
using namespace troupe::test;
using objects::read_tensors;
using objects::tensor_writer;

namespace {

std::string written(const tensor_writer& writer) {
  std::string bytes;
  writer.write([&](const void* data, std::size_t size) { bytes.append(static_cast<const char*>(data), size); });
  return bytes;
}

at::Tensor tensor_of(const std::string& bytes) {
  auto result = at::empty({static_cast<std::int64_t>(bytes.size())}, at::kByte);
  std::copy(bytes.begin(), bytes.end(), static_cast<char*>(result.mutable_data_ptr()));
  return result;
}

objects::tensor_file read(const std::string& bytes) { return read_tensors(tensor_of(bytes)); }

/// A file with this header, followed by so many bytes of elements.
std::string file_of(const std::string& header, std::size_t elements = 0) {
  const std::uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + std::string(elements, '\0');
}

std::string refusal(const std::string& bytes) {
  return text_of<std::runtime_error>([&] { read(bytes); });
}
std::string refusal_to_write(const named_tensors& tensors) {
  return text_of<error>([&] { tensor_writer{tensors}; });
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return '"' + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + '}';
}

const at::Tensor& named(const named_tensors& all, const std::string& name) {
  for (const auto& each : all)
    if (each.first == name) return each.second;
  throw std::out_of_range(name);
}

constexpr std::array all_dtypes{at::kBool,
                                at::kByte,
                                at::kChar,
                                at::kShort,
                                at::kInt,
                                at::kLong,
                                at::kUInt16,
                                at::kUInt32,
                                at::kUInt64,
                                at::kHalf,
                                at::kBFloat16,
                                at::kFloat,
                                at::kDouble,
                                at::kComplexFloat,
                                at::kFloat8_e5m2,
                                at::kFloat8_e4m3fn,
                                at::kFloat8_e5m2fnuz,
                                at::kFloat8_e4m3fnuz,
                                at::kFloat8_e8m0fnu};

}  // namespace

BOOST_AUTO_TEST_SUITE(safetensors)

BOOST_AUTO_TEST_CASE(tensors_of_every_dtype_come_back_bit_by_bit) {  // WF-1
  named_tensors tensors;
  for (const auto dtype : all_dtypes) {
    auto bytes = at::randint(dtype == at::kBool ? 2 : 256, {24}, at::kByte);
    tensors.emplace_back(c10::toString(dtype), bytes.view(dtype));
  }
  const objects::texts_by_name metadata{{"format", "pt"}, {"\xc3\xa4", std::string("\"quoted\"\n\0z", 11)}};
  const auto file = read(written(tensor_writer(tensors, metadata)));
  BOOST_TEST((file.metadata == metadata));
  BOOST_REQUIRE(file.tensors.size() == tensors.size());
  for (const auto& [name, tensor] : tensors) {
    const auto& found = named(file.tensors, name);
    BOOST_TEST((found.scalar_type() == tensor.scalar_type()), name);
    BOOST_TEST(found.sizes() == tensor.sizes(), name);
    BOOST_TEST(std::memcmp(found.const_data_ptr(), tensor.const_data_ptr(), tensor.nbytes()) == 0, name);
  }
}

BOOST_AUTO_TEST_CASE(tensors_of_every_shape_come_back) {  // WF-1
  const auto wide = at::arange(6, at::kDouble).reshape({2, 3});
  const auto complex = at::complex(at::ones({2}), at::full({2}, 3.0));
  const named_tensors tensors{{"", at::full({}, 7, at::kLong)},
                              {"none", at::empty({0}, at::kDouble)},
                              {"none of many", at::empty({3, 0, std::int64_t{1} << 40}, at::kDouble)},
                              {"view", wide.t()},
                              {"expanded", at::ones({1}, at::kDouble).expand({4})},
                              {"leaf", at::ones({2}, at::kDouble).requires_grad_()},
                              {"conjugated", complex.conj()},
                              {"negated", at::_neg_view(at::full({2}, 3.0))}};
  BOOST_TEST_REQUIRE(named(tensors, "negated").is_neg());
  const tensor_writer writer(tensors);
  const auto bytes = written(writer);
  BOOST_TEST(bytes.size() == writer.bytes());
  BOOST_TEST(bytes.size() < 900u);
  const auto file = read(bytes);
  BOOST_TEST(file.metadata.empty());
  BOOST_REQUIRE(file.tensors.size() == tensors.size());
  for (const auto& [name, tensor] : file.tensors) {
    const auto& expected = named(tensors, name);
    BOOST_TEST(tensor.sizes() == expected.sizes(), name);
    BOOST_TEST(tensor.equal(expected.detach().resolve_conj().resolve_neg()), name);
    BOOST_TEST(!tensor.requires_grad(), name);
  }
  BOOST_TEST(read(written(tensor_writer(named_tensors()))).tensors.empty());
}

BOOST_AUTO_TEST_CASE(elements_lie_at_multiples_of_their_size) {  // WF-2
  const named_tensors tensors{
    {"a", at::ones({3}, at::kByte)}, {"b", at::ones({1}, at::kDouble)}, {"c", at::ones({1}, at::kHalf)}, {"d", at::ones({1})}};
  const auto bytes = written(tensor_writer(tensors));
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  BOOST_TEST(length % 8 == 0u);
  std::string order;
  for (const auto& [name, tensor] : read(bytes).tensors) order += name;
  BOOST_TEST(order == "bdca");
}

BOOST_AUTO_TEST_CASE(a_file_is_read_as_its_bytes_are) {
  const temporary_folder folder;
  const auto bytes = written(tensor_writer({{"w", at::arange(5)}}, {{"a", "b"}}));
  write_text(folder / "a", bytes);
  const support::owned_descriptor file(::open((folder / "a").c_str(), O_RDONLY | O_CLOEXEC));
  const auto found = read_tensors(file, folder / "a");
  BOOST_TEST((found.metadata == objects::texts_by_name{{"a", "b"}}));
  BOOST_TEST(found.tensors.at(0).second.equal(at::arange(5)));
}

BOOST_AUTO_TEST_CASE(a_file_of_another_program_is_read) {  // the order of the header is free, and blanks may follow it
  const auto bytes = file_of("{" + entry("b", "F32", "[1]", "[8,12]") + "," + entry("a", "I16", "[2,2]", "[0,8]") + "}   ", 12);
  const auto file = read(bytes);
  BOOST_REQUIRE(file.tensors.size() == 2u);
  BOOST_TEST(file.tensors[0].first == "a");
  BOOST_TEST(file.tensors[1].second.equal(at::zeros({1})));
}

BOOST_AUTO_TEST_CASE(tensors_that_a_file_can_not_hold_are_refused_by_name) {  // WF-1
  BOOST_TEST(contains(refusal_to_write({{"w", {}}}), "'w': it is undefined"));
  BOOST_TEST(contains(refusal_to_write({{"w", at::ones({2}).to_sparse()}}), "'w': expected a dense tensor"));
  BOOST_TEST(contains(refusal_to_write({{"w", at::ones({2}, at::kComplexDouble)}}), "'w': safetensors has no dtype"));
  BOOST_TEST(contains(refusal_to_write({{"w", at::ones({2})}, {"w", at::ones({2})}}), "two tensors called 'w'"));
  BOOST_TEST(contains(refusal_to_write({{"__metadata__", at::ones({2})}}), "called '__metadata__'"));
  BOOST_TEST(contains(refusal_to_write({{"\xff", at::ones({2})}}), "not UTF-8"));
  const std::string long_name(objects::most_header_bytes, 'w');
  BOOST_TEST(contains(refusal_to_write({{long_name, at::ones({2})}}), "at most 16777216 are possible"));
}

BOOST_AUTO_TEST_CASE(headers_that_do_not_fit_the_bytes_are_refused) {  // WF-3
  const auto one = [](const std::string& dtype, const std::string& shape, const std::string& offsets, std::size_t elements) {
    return refusal(file_of("{" + entry("w", dtype, shape, offsets) + "}", elements));
  };
  BOOST_TEST(one("F32", "[2,3]", "[0,24]", 24) == "");
  for (const auto& [heard, why] : std::vector<std::pair<std::string, std::string>>{
         {one("F31", "[2,3]", "[0,24]", 24), "tensor 'w', dtype: expected a dtype such as \"F32\", got \"F31\""},
         {one("F32", "[2,3]", "[0,23]", 23), "expected the offsets of 24 bytes, which its shape and dtype have, got [0,23]"},
         {one("F32", "[2,3]", "[24,0]", 24), "expected the offsets of 24 bytes"},
         {one("F32", "[2,3]", "[0,24,24]", 24), "expected the offsets of 24 bytes"},
         {one("F32", "[2,3]", "[8,32]", 32), "expected its bytes from 0 on, got 8: there is a gap or an overlap"},
         {one("F32", "[2,3]", "[0,24]", 25), "expected 24 bytes of elements, got 25"},
         {one("F32", "[2,3]", "[0,24]", 23), "expected 24 bytes of elements, got 23"},
         {one("F32", "[-1]", "[0,0]", 0), "shape: expected a list of whole numbers from 0 on, got [-1]"},
         {one("F32", "[1.0]", "[0,4]", 4), "shape: expected a list of whole numbers"},
         {one("F32", "1", "[0,4]", 4), "shape: expected a list of whole numbers"},
         {one("F32", "[1]", "[0,18446744073709551616]", 4), "data_offsets: expected a list of whole numbers"},
         {one("F32", "[4294967296,4294967296]", "[0,0]", 0), "expected a shape that fits into memory"},
         {one("F32", "[0,4294967296,4294967296]", "[0,0]", 0), "expected a shape that fits into memory"},
         {one("F32", "[18446744073709551615]", "[0,0]", 0), "expected a shape that fits into memory"},
         {refusal(file_of("{" + entry("a", "U8", "[2]", "[0,2]") + "," + entry("b", "U8", "[2]", "[1,3]") + "}", 3)),
          "tensor 'b': expected its bytes from 2 on, got 1"},
         {refusal(file_of("{" + entry("a", "U8", "[2]", "[0,2]") + "," + entry("b", "U8", "[2]", "[3,5]") + "}", 5)),
          "tensor 'b': expected its bytes from 2 on, got 3"},
         {refusal(file_of("{" + entry("a", "U8", "[2]", "[0,2]") + "," + entry("b", "U8", "[2]", "[0,2]") + "}", 2)),
          "tensor 'b': expected its bytes from 2 on, got 0"},
         {refusal(file_of("{" + entry("a", "U8", "[0]", "[0,0]") + "," + entry("a", "U8", "[0]", "[0,0]") + "}")),
          "the field \"a\" is written twice"},
         {refusal(file_of(R"({"a":{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}})")), "is written twice"},
         {refusal(file_of(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"more":1}})")),
          R"(tensor 'a': expected {"dtype", "shape", "data_offsets"}, got)"},
         {refusal(file_of(R"({"a":{"dtype":"U8","shape":[0],"offsets":[0,0]}})")), "tensor 'a': expected {"},
         {refusal(file_of(R"({"a":7})")), "tensor 'a': expected {"},
         {refusal(file_of(R"({"__metadata__":{"a":1}})")), "__metadata__: expected an object of texts, got"},
         {refusal(file_of(R"({"__metadata__":[]})")), "__metadata__: expected an object of texts, got"},
         {refusal(file_of("[]")), "the header: expected an object, got []"},
         {refusal(file_of("{")), "the header: not valid JSON"},
         {refusal(file_of("{\"\xff\":1}")), "the header: not valid JSON"},
         {refusal(file_of("{\"a\":1e999}")), "the header: not valid JSON"},
         {refusal("1234567"), "expected at least 8 bytes, got 7"},
       })
    BOOST_TEST(contains(heard, why), heard << " / " << why);
  const auto other_bools = file_of("{" + entry("w", "BOOL", "[1]", "[0,1]") + "}") + '\2';
  BOOST_TEST(contains(refusal(other_bools), "expected bytes 0 and 1 of BOOL"));
}

BOOST_AUTO_TEST_CASE(a_file_cut_at_any_byte_is_refused) {  // WF-3
  const auto whole = written(tensor_writer({{"w", at::ones({2})}, {"n", at::ones({1}, at::kByte)}}, {{"a", "b"}}));
  for (std::size_t size = 0; size < whole.size(); ++size) BOOST_REQUIRE(refusal(whole.substr(0, size)) != "");
}

BOOST_AUTO_TEST_CASE(a_file_for_which_there_is_no_memory_is_not_taken_for_another_one) {
  auto header = file_of("{" + entry("w", "F32", "[36028797018963968]", "[0,144115188075855872]") + "}");
  const auto size = static_cast<std::int64_t>(header.size()) + (std::int64_t{1} << 57);  // only the header is there
  const auto file = at::from_blob(header.data(), {size}, at::kByte);
  BOOST_TEST(contains(text_of<error>([&] { read_tensors(file, "run/a"); }), "can't read 'run/a': there is too little memory"));
}

BOOST_AUTO_TEST_CASE(a_disk_that_can_not_be_read_is_not_taken_for_another_file) {
  const temporary_folder folder;
  write_text(folder / "a", written(tensor_writer({{"w", at::arange(5)}})));
  const auto status = status_of_child([&] {
    if (!refuse_calls({SYS_pread64}, EIO)) return 1;
    const auto text = text_of<error>([&] { load_state(folder / "a"); });
    return contains(text, "can't read '" + (folder / "a") + "': Input/output error") ? 0 : 2;
  });
  BOOST_TEST(status == 0);
}

BOOST_AUTO_TEST_CASE(headers_that_are_too_long_or_too_deep_are_refused) {  // WF-4
  auto bytes = file_of("{}");
  bytes[7] = '\x7f';
  BOOST_TEST(contains(refusal(bytes), "expected a header of at most 2 bytes, got the length 9151314442816847874"));
  const auto too_long = file_of("{" + std::string(objects::most_header_bytes, ' ') + "}");
  BOOST_TEST(contains(refusal(too_long), "expected a header of at most 16777216 bytes, got the length 16777218"));
  std::string many = "{";
  for (int i = 0; many.size() < objects::most_header_bytes - 32; ++i) many += "\"" + std::to_string(i) + "\":{},";
  BOOST_TEST(contains(refusal(file_of(many + "\"last\":{}}")), "expected at most 1000000 values"));
  const std::string why = "nested at most 3 deep";
  BOOST_TEST(contains(refusal(file_of(R"({"a":{"shape":[[]]}})")), why));
  BOOST_TEST(contains(refusal(file_of(std::string(1'000'000, '['))), why));
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  BOOST_TEST(contains(refusal(file_of(objects)), why));
}

BOOST_AUTO_TEST_SUITE_END()
