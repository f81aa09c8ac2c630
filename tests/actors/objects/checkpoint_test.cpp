// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/objects/checkpoint.hpp>

#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <ATen/ATen.h>

#include <actors/temporary_folder.hpp>
#include <troupe/actors/objects/random_state.hpp>
#include <troupe/actors/objects/safetensors.hpp>
#include <troupe/messages/errors.hpp>

using namespace troupe;
using namespace troupe::test;

namespace {

const std::string save_id = "0123456789abcdef";

objects::checkpoint_part sample_part(const std::string& save = save_id) {
  objects::checkpoint_part part{"stage1", save, "adamw", {{"lr", 0.1}, {"amsgrad", true}}, {}, {}};
  part.parameters.emplace_back("0/block.weight", at::randn({3, 4}));
  part.parameters.emplace_back("0/block.bias", at::randn({}).to(at::kDouble));
  part.parameters.emplace_back("view", at::randn({1000, 4}).slice(0, 5, 7).t());
  part.parameters.emplace_back("half", at::randn({0, 2}).to(at::kBFloat16));
  part.states.push_back({true, 7, {at::randn({3, 4}), at::rand({3, 4}), {}}});
  part.states.push_back({});
  part.states.push_back({true, 0, {at::randn({4, 2}), at::rand({4, 2}), at::rand({4, 2})}});
  part.states.push_back({});
  part.buffers.emplace_back("0/norm.running_mean", at::randn({1000, 4}).slice(0, 5, 7));
  part.buffers.emplace_back("0/norm.steps", at::tensor(7));
  part.random = objects::random_state();
  return part;
}

bool same(const at::Tensor& a, const at::Tensor& b) {
  return a.defined() == b.defined() && (!a.defined() || (a.scalar_type() == b.scalar_type() && at::equal(a, b)));
}

void write_sample(const temporary_folder& folder, const std::string& save = save_id) {
  const auto name = objects::part_file_name("stage1", save);
  const auto digest = objects::write_part(folder / name, sample_part(save));
  objects::write_manifest(folder.path(), {save, {{"stage1", name, digest}}, {{"steps", 12}}});
}

void replace(const std::string& path, const std::string& from, const std::string& to) {
  auto text = read_text(path);
  const auto at = text.find(from);
  BOOST_REQUIRE(at != std::string::npos);
  write_text(path, text.replace(at, from.size(), to));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(checkpoints)

BOOST_AUTO_TEST_CASE(a_part_comes_back_as_it_was_written) {
  temporary_folder folder;
  const auto part = sample_part();
  const auto digest = objects::write_part(folder / "a.safetensors", part);
  BOOST_TEST(digest.bytes < 25'000u);  // a view is written without the rest of its storage
  const auto read = objects::read_part(folder / "a.safetensors", digest, save_id);
  BOOST_TEST(read.node == part.node);
  BOOST_TEST(read.save == part.save);
  BOOST_TEST(read.optimizer == part.optimizer);
  BOOST_TEST((read.options == part.options));
  BOOST_REQUIRE(read.parameters.size() == part.parameters.size());
  BOOST_REQUIRE(read.states.size() == part.states.size());
  for (std::size_t i = 0; i < part.parameters.size(); ++i) {
    BOOST_TEST(read.parameters[i].first == part.parameters[i].first);
    BOOST_TEST(same(read.parameters[i].second, part.parameters[i].second));
    BOOST_TEST(read.states[i].present == part.states[i].present);
    BOOST_TEST(read.states[i].step == part.states[i].step);
    for (std::size_t s = 0; s < part.states[i].slots.size(); ++s)
      BOOST_TEST(same(read.states[i].slots[s], part.states[i].slots[s]));
  }
  BOOST_REQUIRE(read.buffers.size() == part.buffers.size());
  for (std::size_t i = 0; i < part.buffers.size(); ++i) {
    BOOST_TEST(read.buffers[i].first == part.buffers[i].first);
    BOOST_TEST(same(read.buffers[i].second, part.buffers[i].second));
  }
  BOOST_TEST(same(read.random, part.random));
}

BOOST_AUTO_TEST_CASE(a_part_keeps_parameter_groups) {
  auto part = sample_part();
  part.further = {{{"lr", 1e-300}}, {}};
  part.groups = {0, 2, 1, 0};
  const auto bytes = objects::part_bytes(part);
  const auto read = objects::parse_part(bytes, "a", objects::digest_of(bytes), save_id);
  BOOST_TEST((read.options == part.options));
  BOOST_TEST((read.further == part.further));
  BOOST_TEST((read.groups == part.groups));
}

BOOST_AUTO_TEST_CASE(parameters_and_buffers_have_their_own_names_in_a_part) {  // CP-4
  std::set<std::string> own;
  std::set<std::string> others;
  for (const auto& [name, tensor] : objects::read_tensors(objects::part_bytes(sample_part())).tensors)
    (name.starts_with("troupe:") ? others : own).insert(name);
  BOOST_TEST(
    (own == std::set<std::string>{"0/block.weight", "0/block.bias", "view", "half", "0/norm.running_mean", "0/norm.steps"}));
  BOOST_TEST(
    (others == std::set<std::string>{"troupe:exp_avg/0/block.weight", "troupe:exp_avg_sq/0/block.weight", "troupe:exp_avg/view",
                                     "troupe:exp_avg_sq/view", "troupe:max_exp_avg_sq/view", "troupe:random"}));
}

BOOST_AUTO_TEST_CASE(a_part_that_could_not_be_read_back_is_not_written) {  // CP-4
  const auto refusal = [](const std::function<void(objects::checkpoint_part&)>& change) {
    auto part = sample_part();
    change(part);
    const auto text = text_of<error>([&] { objects::part_bytes(part); });
    BOOST_TEST(text_of<error>([&] { objects::estimated_bytes(part); }) == text);  // known before the first save
    return text;
  };
  BOOST_TEST(contains(refusal([](auto& part) { part.buffers[0].first = "troupe:random"; }), "names that begin with 'troupe:'"));
  BOOST_TEST(contains(refusal([](auto& part) { part.buffers[0].first = "view"; }), "two tensors called 'view'"));
  BOOST_TEST(contains(refusal([](auto& part) { part.buffers[0].first = "\xff"; }), "not UTF-8"));
  BOOST_TEST(
    contains(refusal([](auto& part) { part.options["lr"] = HUGE_VAL; }), "option 'lr' of the optimizer is not finite"));
}

BOOST_AUTO_TEST_CASE(a_part_whose_metadata_and_tensors_do_not_belong_together_is_refused) {  // CP-4
  const auto whole = objects::read_tensors(objects::part_bytes(sample_part()));
  const auto refusal = [&](const std::string& from, const std::string& to, named_tensors further = {}) {
    auto [tensors, metadata] = whole;
    auto& about = metadata.at("troupe");
    const auto at = about.find(from);
    BOOST_REQUIRE_MESSAGE(at != std::string::npos, from << " is not in " << about);
    about.replace(at, from.size(), to);
    tensors.insert(tensors.end(), further.begin(), further.end());
    std::string bytes;
    objects::tensor_writer(tensors, metadata).write([&](const void* data, std::size_t size) {
      bytes.append(static_cast<const char*>(data), size);
    });
    const auto part = at::from_blob(bytes.data(), {static_cast<std::int64_t>(bytes.size())}, at::kByte);
    return text_of<error>([&] { objects::parse_part(part, "a", objects::digest_of(part), save_id); });
  };
  BOOST_TEST(refusal("{", "{") == "");
  BOOST_TEST(refusal(R"("version":4)", R"("version":4,"new field":[])") == "");
  BOOST_TEST(refusal(R"("step":7)", R"("step":4611686018427387904)") == "");
  for (const auto& [heard, why] : std::vector<std::pair<std::string, std::string>>{
         {refusal("{", "["), "not valid JSON"},
         {refusal(R"("version":4)", R"("version":3)"), "it has format 3; this program reads format 4"},
         {refusal(R"("node")", R"("knot")"), "expected the field 'node', got"},
         {refusal(R"("node":"stage1")", R"("node":1)"), "expected a text, got 1"},
         {refusal(R"("adamw")", R"("other")"), "other"},
         {refusal(R"("lr":0.1)", R"("lr":"0.1")"), "expected true, false or a number as option 'lr', got \"0.1\""},
         {refusal(R"("groups":[{)", R"("groups":[0,{)"), "expected an object of options, got 0"},
         {refusal(R"("parameters":[)", R"("parameters":[7,)"), "expected the field 'name', got 7"},
         {refusal(R"("group":0)", R"("group":1)"), "expected a group from 0 to 0, got 1"},
         {refusal(R"("group":0)", R"("group":-1)"), "expected a group from 0 to 0, got -1"},
         {refusal(R"("step":7)", R"("step":-7)"), "expected a step from 0 to 4611686018427387904, got -7"},
         {refusal(R"("step":7)", R"("step":7.5)"), "expected a step from 0 to 4611686018427387904, got 7.5"},
         {refusal(R"("step":7)", R"("step":9223372036854775807)"), "4611686018427387904, got 9223372036854775807"},
         {refusal(R"("step":7)", R"("step":18446744073709551615)"), "4611686018427387904, got 18446744073709551615"},
         {refusal(R"("slots":[)", R"("slots":["nothing",)"), "expected the names of what the optimizer keeps, each once"},
         {refusal(R"("slots":[)", R"("slots":["exp_avg",)"), "expected the names of what the optimizer keeps, each once"},
         {refusal(R"(,"step":7)", ""), "expected no tensor that it does not name, got 'troupe:exp_avg"},
         {refusal(R"("buffers":[)", R"("buffers":["other",)"), "expected a tensor called 'other'"},
         {refusal(R"("buffers":[)", R"("buffers":["view",)"), "'view', which is not there or named twice"},
         {refusal(R"("buffers":[)", R"("buffers":[[[[)"), "nested at most 4 deep"},
         {refusal("{", "{", {{"more", at::ones({2})}}), "expected no tensor that it does not name, got 'more'"},
       })
    BOOST_TEST(contains(heard, why), heard << " / " << why);
}

BOOST_AUTO_TEST_CASE(a_part_whose_random_state_is_none_is_refused) {
  temporary_folder folder;
  auto part = sample_part();
  part.random = at::zeros({7}, at::kByte);
  const auto digest = objects::write_part(folder / "a.safetensors", part);
  BOOST_TEST(contains(text_of<error>([&] { objects::read_part(folder / "a.safetensors", digest, save_id); }),
                      "is not a checkpoint of troupe"));
}

BOOST_AUTO_TEST_CASE(a_part_without_parameters_can_be_written) {
  temporary_folder folder;
  const auto digest = objects::write_part(folder / "a.safetensors", {"n", save_id, "sgd", {}, {}, {}});
  BOOST_TEST(objects::read_part(folder / "a.safetensors", digest, save_id).parameters.empty());
}

BOOST_AUTO_TEST_CASE(a_part_damaged_at_any_byte_is_refused_before_it_is_read) {  // CP-3
  temporary_folder folder;
  const auto path = folder / "a.safetensors";
  const auto digest = objects::write_part(path, sample_part());
  const auto bytes = read_text(path);
  for (std::size_t at = 0; at < bytes.size(); at += 97) {
    auto damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    write_text(path, damaged);
    BOOST_REQUIRE(contains(text_of<error>([&] { objects::read_part(path, digest, save_id); }), "with another checksum"));
    write_text(path, bytes.substr(0, at));
    BOOST_REQUIRE(
      contains(text_of<error>([&] { objects::read_part(path, digest, save_id); }), "is damaged or of another save"));
  }
}

BOOST_AUTO_TEST_CASE(a_part_that_is_missing_is_named) {  // CP-3
  temporary_folder folder;
  const auto text = text_of<error>([&] { objects::read_part(folder / "a.safetensors", {}, save_id); });
  BOOST_TEST(contains(text, "can't read '" + (folder / "a.safetensors") + "': No such file or directory"));
}

BOOST_AUTO_TEST_CASE(a_part_of_another_save_is_refused) {  // CP-3
  temporary_folder folder;
  const auto digest = objects::write_part(folder / "a.safetensors", sample_part("ffffffffffffffff"));
  const auto text = text_of<error>([&] { objects::read_part(folder / "a.safetensors", digest, save_id); });
  BOOST_TEST(contains(text, "it belongs to save ffffffffffffffff, not " + save_id));
}

BOOST_AUTO_TEST_CASE(another_file_is_not_taken_for_a_part) {
  temporary_folder folder;
  write_text(folder / "a.safetensors", "no file of tensors");
  const auto text = text_of<error>(
    [&] { objects::read_part(folder / "a.safetensors", support::file_digest::of(folder / "a.safetensors"), save_id); });
  BOOST_TEST(contains(text, "is not a checkpoint of troupe"));
}

BOOST_AUTO_TEST_CASE(the_manifest_keeps_every_value_to_the_bit) {
  temporary_folder folder;
  const attributes about{{"steps", std::int64_t{1} << 62},
                         {"rate", 0.1},
                         {"tiny", std::numeric_limits<double>::denorm_min()},
                         {"infinite", HUGE_VAL},
                         {"on", true},
                         {"off", false},
                         {"name", "a \"quoted\"\n text"},
                         {"bytes", std::string("\0\xff\x80z", 4)},
                         {"empty", ""},
                         {"integers", std::vector{std::int64_t{1} << 62, std::int64_t{-1}}},
                         {"reals", std::vector{0.1, HUGE_VAL}},
                         {"texts", std::vector<std::string>{"a", std::string("\0\xff", 2)}},
                         {"no_texts", std::vector<std::string>()},
                         {"no_reals", std::vector<double>()},
                         {"\xc3\xa4", 1}};
  objects::write_manifest(folder.path(),
                          {save_id, {{"a b", objects::part_file_name("a b", save_id), {42, ~std::uint64_t{0}}}}, about});
  const auto read = objects::read_manifest(folder.path());
  BOOST_TEST(read.save == save_id);
  BOOST_TEST((read.about == about));
  BOOST_REQUIRE(read.parts.size() == 1u);
  BOOST_TEST(read.parts[0].file == "a%20b." + save_id + ".safetensors");
  BOOST_TEST((read.part("a b").digest == support::file_digest{42, ~std::uint64_t{0}}));
  BOOST_TEST(contains(text_of<error>([&] { read.part("other"); }), "no part of node 'other'; it has 'a b'"));
}

BOOST_AUTO_TEST_CASE(a_new_checkpoint_takes_the_place_of_the_old_one) {  // CP-1
  temporary_folder folder;
  write_sample(folder);
  write_text(folder / "notes.safetensors", "of the user");
  write_text(folder / ("stage9." + save_id + ".safetensors.part"), "left by a process that was killed");
  write_sample(folder, "aaaaaaaaaaaaaaaa");
  BOOST_TEST(objects::read_manifest(folder.path()).save == "aaaaaaaaaaaaaaaa");
  BOOST_TEST(
    (folder.files() == std::set<std::string>{"checkpoint.json", "notes.safetensors", "stage1.aaaaaaaaaaaaaaaa.safetensors"}));
}

BOOST_AUTO_TEST_CASE(a_save_that_dies_before_its_manifest_leaves_the_checkpoint_before_it) {  // CP-2
  temporary_folder folder;
  write_sample(folder);
  const auto other = objects::part_file_name("stage1", "aaaaaaaaaaaaaaaa");
  objects::write_part(folder / other, sample_part("aaaaaaaaaaaaaaaa"));
  const auto manifest = objects::read_manifest(folder.path());
  BOOST_TEST(manifest.save == save_id);
  objects::read_part(folder / manifest.part("stage1").file, manifest.part("stage1").digest, manifest.save);
  objects::remove_parts(folder.path(), "aaaaaaaaaaaaaaaa");
  BOOST_TEST((folder.files() == std::set<std::string>{"checkpoint.json", objects::part_file_name("stage1", save_id)}));
}

BOOST_AUTO_TEST_CASE(a_disk_that_is_full_at_the_manifest_leaves_the_checkpoint_before_it) {  // CP-2
  temporary_folder folder;
  write_sample(folder);
  std::filesystem::create_symlink("/dev/full", folder / "checkpoint.json.part");
  const auto text = text_of<error>([&] { write_sample(folder, "aaaaaaaaaaaaaaaa"); });
  BOOST_TEST(contains(text, "checkpoint.json': No space left on device"));
  const auto manifest = objects::read_manifest(folder.path());
  BOOST_TEST(manifest.save == save_id);
  objects::read_part(folder / manifest.part("stage1").file, manifest.part("stage1").digest, manifest.save);
}

BOOST_AUTO_TEST_CASE(a_folder_without_a_checkpoint_is_named) {
  temporary_folder folder;
  const auto text = text_of<error>([&] { objects::read_manifest(folder / "nowhere"); });
  BOOST_TEST(contains(text, "no checkpoint in '" + (folder / "nowhere") + "'"));
}

BOOST_AUTO_TEST_CASE(a_manifest_cut_at_any_byte_is_refused) {
  temporary_folder folder;
  write_sample(folder);
  const auto text = read_text(folder / "checkpoint.json");
  const auto last = text.rfind('}');
  for (std::size_t size = 0; size < last; ++size) {
    write_text(folder / "checkpoint.json", text.substr(0, size));
    BOOST_REQUIRE(!text_of<error>([&] { objects::read_manifest(folder.path()); }).empty());
  }
}

BOOST_AUTO_TEST_CASE(a_manifest_can_not_lead_out_of_its_folder) {
  temporary_folder folder;
  write_sample(folder);
  replace(folder / "checkpoint.json", "\"file\": \"", "\"file\": \"../");
  BOOST_TEST(contains(text_of<error>([&] { objects::read_manifest(folder.path()); }),
                      "is damaged: the part of node 'stage1' is called '../"));
}

BOOST_AUTO_TEST_CASE(a_manifest_names_the_folders_of_parts_that_lie_on_their_nodes) {
  temporary_folder folder;
  const auto name = objects::part_file_name("stage1", save_id);
  objects::write_manifest(folder.path(), {save_id, {{"stage1", name, {1, 2}, "parts/a"}}, {}});
  BOOST_TEST(objects::read_manifest(folder.path()).part("stage1").folder == "parts/a");
  replace(folder / "checkpoint.json", "\"parts/a\"", "\"../parts\"");
  BOOST_TEST(contains(text_of<error>([&] { objects::read_manifest(folder.path()); }),
                      "expected to be a path below a node's data folder"));

  write_sample(folder);  // all in one folder
  BOOST_TEST(!contains(read_text(folder / "checkpoint.json"), "folder"));
  BOOST_TEST(objects::read_manifest(folder.path()).part("stage1").path("/run") == "/run/" + name);
}

BOOST_AUTO_TEST_CASE(the_file_of_a_part_is_neither_hidden_nor_in_another_folder) {
  BOOST_TEST(objects::part_file_name("../../a", save_id) == "%2E%2E%2F%2E%2E%2Fa." + save_id + ".safetensors");
  BOOST_TEST(objects::part_file_name(".a", save_id) == "%2Ea." + save_id + ".safetensors");
  BOOST_TEST(contains(text_of<error>([] { objects::part_file_name("", save_id); }), "a node without a name"));
  for (const std::string save : {"", "../../../../../x", "0123456789abcde/", "0123456789ABCDEF", "0123456789abcdef0"})
    BOOST_TEST(contains(text_of<error>([&] { objects::part_file_name("a", save); }), "16 hexadecimal digits"), save);
}

BOOST_AUTO_TEST_CASE(a_node_removes_its_own_parts_alone) {
  temporary_folder folder;
  const support::open_folder opened(folder.path(), "run");
  const auto own = objects::part_file_name("stage1", save_id);
  const auto own_before = objects::part_file_name("stage1", "aaaaaaaaaaaaaaaa");
  const std::set<std::string> others{objects::part_file_name("stage2", save_id), objects::part_file_name("stage10", save_id),
                                     "stage1.safetensors", "stage1.x." + save_id + ".safetensors", "checkpoint.json"};
  for (const auto& name : others) write_text(folder / name, "");
  for (const auto& name : {own, own_before, own_before + ".part"}) write_text(folder / name, "");
  objects::remove_own_parts(opened, "stage1", save_id, objects::own_parts::of_other_saves);
  auto left = others;
  left.insert(own);
  BOOST_TEST((folder.files() == left));
  objects::remove_own_parts(opened, "stage1", save_id, objects::own_parts::of_this_save);
  BOOST_TEST((folder.files() == others));
}

BOOST_AUTO_TEST_CASE(a_part_has_the_same_bytes_in_memory_and_in_its_file) {  // CP-3
  temporary_folder folder;
  const auto part = sample_part();
  const auto digest = objects::write_part(folder / "a.safetensors", part);
  const auto bytes = objects::part_bytes(part);
  BOOST_TEST((objects::digest_of(bytes) == digest));
  BOOST_TEST(objects::estimated_bytes(part) >= digest.bytes);
  BOOST_TEST(objects::parse_part(bytes, "a.safetensors", digest, save_id).parameters.size() == part.parameters.size());
  bytes[100].bitwise_xor_(1);
  BOOST_TEST(contains(text_of<error>([&] { objects::parse_part(bytes, "a.safetensors", digest, save_id); }),
                      "'a.safetensors' is damaged"));
}

BOOST_AUTO_TEST_CASE(a_manifest_of_another_format_says_which) {
  temporary_folder folder;
  write_sample(folder);
  replace(folder / "checkpoint.json", "\"version\": 4", "\"version\": 9");
  BOOST_TEST(
    contains(text_of<error>([&] { objects::read_manifest(folder.path()); }), "has format 9; this program reads format 4"));
}

BOOST_AUTO_TEST_CASE(a_manifest_says_of_which_kind_a_checksum_is) {
  temporary_folder folder;
  write_sample(folder);
  replace(folder / "checkpoint.json", "\"xxh3_64\"", "\"crc32\"");
  BOOST_TEST(
    contains(text_of<error>([&] { objects::read_manifest(folder.path()); }),
             "checkpoint.json' names 'stage1." + save_id + ".safetensors': expected a checksum of kind xxh3_64, got 'crc32'"));
}

BOOST_AUTO_TEST_CASE(the_id_of_a_save_is_drawn_in_both_halves) {
  std::set<std::string> first_halves;
  std::set<std::string> second_halves;
  for (int i = 0; i < 4; ++i) {
    const auto id = troupe::objects::new_save_id();
    BOOST_REQUIRE(id.size() == 16u);
    first_halves.insert(id.substr(0, 8));
    second_halves.insert(id.substr(8));
  }
  BOOST_TEST(first_halves.size() > 1u);
  BOOST_TEST(second_halves.size() > 1u);
}

BOOST_AUTO_TEST_SUITE_END()
