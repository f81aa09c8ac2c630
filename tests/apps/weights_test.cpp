// SPDX-License-Identifier: BSD-3-Clause
#include "apps/weights.hpp"

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <exception>
#include <filesystem>
#include <set>
#include <string>

#include <boost/test/unit_test.hpp>

#include <ATen/ATen.h>

#include <actors/size_limit.hpp>
#include <actors/temporary_folder.hpp>
#include <troupe/actors/objects/checkpoint.hpp>
#include <troupe/actors/objects/random_state.hpp>
#include <troupe/actors/state_file.hpp>

#include "apps/folder_lock.hpp"
#include "support/forked_child.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

/// A checkpoint of two nodes in the folder `run`.
struct checkpoint_of_two {
  temporary_folder folder;
  std::string run = folder / "run";
  std::string file = folder / "model.safetensors";
  objects::checkpoint_manifest manifest{"0123456789abcdef", {}, {{"step", 7}}};

  checkpoint_of_two() {
    std::filesystem::create_directory(run);
    for (const std::string node : {"stage1", "stage2"}) {
      objects::checkpoint_part part{node, manifest.save, "adam", {{"lr", 0.5}}, {}, {}};
      if (node == "stage2") part.optimizer = "adagrad";
      part.parameters.emplace_back("0/layer.weight", at::full({2, 3}, node == "stage1" ? 1.0 : 2.0));
      part.states.push_back({true, 7, {at::ones({2, 3}), {}, {}}});
      part.buffers.emplace_back("0/layer.mean", at::full({3}, node == "stage1" ? 1 : 2, at::kLong));
      part.random = objects::random_state();
      const auto name = objects::part_file_name(node, manifest.save);
      manifest.parts.push_back({node, name, objects::write_part(run + "/" + name, part)});
    }
    objects::write_manifest(run, manifest);
  }

  apps::renames names(const std::string& text) const {
    write_text(folder / "names.json", text);
    return apps::renames(folder / "names.json");
  }
  std::set<std::string> exported(apps::renames names = {}) const {
    apps::export_weights(run, file, std::move(names));
    std::set<std::string> all;
    for (const auto& [name, tensor] : load_state(file)) all.insert(name);
    return all;
  }
  std::string refusal_to_export(const std::string& text) const {
    return text_of<std::exception>([&] { exported(names(text)); });
  }
  std::string refusal_to_import(const named_tensors& state) const {
    save_state(file, state);
    return text_of<std::exception>([&] { apps::import_weights(file, run); });
  }
};

using names_of_tensors = std::set<std::string>;

/// Others can't mount a small disk.
boost::test_tools::assertion_result is_root(boost::unit_test::test_unit_id) { return ::geteuid() == 0; }

}  // namespace

BOOST_AUTO_TEST_SUITE(weights)

BOOST_FIXTURE_TEST_CASE(the_parts_of_all_nodes_are_joined, checkpoint_of_two) {
  BOOST_TEST(apps::export_weights(run, file) == 4u);
  BOOST_TEST((exported() == names_of_tensors{"stage1/0/layer.weight", "stage1/0/layer.mean", "stage2/0/layer.weight",
                                             "stage2/0/layer.mean"}));
}

BOOST_FIXTURE_TEST_CASE(tensors_get_other_names, checkpoint_of_two) {
  BOOST_TEST(
    (exported(names(R"({"stage1/0/layer.weight": "w", "stage1/": "a.", "stage2/0/layer.": "", "stage2/0/layer.mean": "m"})")) ==
     names_of_tensors{"w", "a.0/layer.mean", "weight", "m"}));
  BOOST_TEST(contains(refusal_to_export(R"({"stage1/0/layer.w": "w"})"),
                      "names.json: no tensor of the checkpoint is called \"stage1/0/layer.w\" or begins so"));
  BOOST_TEST(contains(refusal_to_export(R"({"stage1/": "", "stage2/": ""})"), "two tensors called '0/layer."));
  BOOST_TEST(contains(refusal_to_export(R"({"stage1/": 7})"), "expected a text as the new name of \"stage1/\", got 7"));
  BOOST_TEST(contains(refusal_to_export("[]"), "expected an object of texts, got []"));
}

BOOST_FIXTURE_TEST_CASE(a_file_that_can_not_be_written_leaves_what_was_there, checkpoint_of_two) {  // WX-1
  write_text(file, "before");
  BOOST_TEST(contains(refusal_to_export(R"({"stage1/": "", "stage2/": ""})"), "two tensors called '0/layer."));
  {
    const size_limit full(100);
    BOOST_TEST(contains(text_of<std::exception>([&] { apps::export_weights(run, file); }), "File too large"));
  }
  BOOST_TEST(read_text(file) == "before");
  BOOST_TEST((folder.files() == std::set<std::string>{"run", "model.safetensors", "names.json"}));
}

BOOST_FIXTURE_TEST_CASE(a_checkpoint_that_is_damaged_gives_no_file, checkpoint_of_two) {  // WX-1
  write_text(run + "/" + manifest.parts[1].file, "damaged");
  for (const auto& to : {file, folder / "none/model.safetensors"})  // the refusal comes before a file is opened
    BOOST_TEST(contains(text_of<std::exception>([&] { apps::export_weights(run, to); }), "is damaged or of another save"));
  BOOST_TEST(!std::filesystem::exists(file));
  std::filesystem::remove(run + "/" + manifest.parts[1].file);
  manifest.parts[1].folder = "parts";
  objects::write_manifest(run, manifest);
  BOOST_TEST(contains(text_of<std::exception>([&] { apps::export_weights(run, file); }),
                      "the node keeps it in the folder parts of its data folder"));
}

BOOST_FIXTURE_TEST_CASE(the_weights_of_a_file_take_the_place_of_those_of_a_checkpoint, checkpoint_of_two) {
  const std::string text = R"({"stage1/0/layer.": "a.", "stage2/0/layer.": "b."})";
  save_state(file, {{"b.weight", at::full({2, 3}, 8.0)},
                    {"a.weight", at::full({2, 3}, 9.0)},
                    {"a.mean", at::full({3}, 9, at::kLong)},
                    {"b.mean", at::full({3}, 8, at::kLong)}});
  BOOST_TEST(apps::import_weights(file, run, names(text)) == 4u);
  const auto found = objects::read_manifest(run);
  BOOST_TEST(found.save != manifest.save);
  BOOST_TEST((found.about == manifest.about));
  const auto part = objects::read_part(found.part("stage2").path(run), found.part("stage2").digest, found.save);
  BOOST_TEST(part.parameters.at(0).second.equal(at::full({2, 3}, 8.0)));
  BOOST_TEST(part.buffers.at(0).second.equal(at::full({3}, 8, at::kLong)));
  BOOST_TEST(part.states.at(0).step == 0);
  BOOST_TEST(part.states.at(0).slots.at(0).equal(at::zeros({2, 3})));
  const auto other = objects::read_part(found.part("stage1").path(run), found.part("stage1").digest, found.save);
  BOOST_TEST(!other.states.at(0).present);
  BOOST_TEST((part.options == attributes{{"lr", 0.5}}));
  BOOST_TEST(std::distance(std::filesystem::directory_iterator(run), {}) == 3);  // the parts of the save before are gone
  const auto before = load_state(file);
  apps::export_weights(run, file, names(text));
  std::size_t equal = 0;
  for (const auto& [name, tensor] : load_state(file))
    for (const auto& [same, old] : before) equal += same == name && tensor.equal(old) ? 1 : 0;
  BOOST_TEST(equal == 4u);
}

BOOST_FIXTURE_TEST_CASE(weights_that_do_not_fit_change_nothing, checkpoint_of_two) {  // WX-2
  exported();
  const auto fitting = load_state(file);
  const auto with = [&](const std::string& name, const at::Tensor& tensor) {
    auto state = fitting;
    for (auto& each : state)
      if (each.first == name) each.second = tensor;
    return state;
  };
  auto more = fitting;
  more.emplace_back("more", at::ones({1}));
  auto fewer = fitting;
  fewer.pop_back();
  BOOST_TEST(contains(refusal_to_import(more), "expected only tensors of the checkpoint in " + file + ", got 'more'"));
  BOOST_TEST(contains(refusal_to_import(fewer), "expected a tensor '" + fitting.back().first + "' in " + file));
  BOOST_TEST(contains(refusal_to_import(with("stage2/0/layer.weight", at::ones({3, 2}))), "got Float[3, 2]"));
  BOOST_TEST(contains(refusal_to_import(with("stage2/0/layer.weight", at::ones({2, 3}, at::kDouble))), "got Double[2, 3]"));
  BOOST_TEST(objects::read_manifest(run).save == manifest.save);
  BOOST_TEST(refusal_to_import(fitting) == "");
}

BOOST_FIXTURE_TEST_CASE(a_folder_that_a_run_uses_is_not_imported_to, checkpoint_of_two) {  // WX-2, FO-1
  exported();
  {
    const apps::folder_lock of_run(folder.path(), "");
    BOOST_TEST(contains(refusal_to_import(load_state(file)), "another run is writing to the folder " + folder.path()));
  }
  BOOST_TEST(objects::read_manifest(run).save == manifest.save);
  BOOST_TEST(refusal_to_import(load_state(file)) == "");
  BOOST_TEST((folder.files() == std::set<std::string>{"run", "model.safetensors"}));
}

BOOST_FIXTURE_TEST_CASE(a_disk_without_space_is_told_before_a_file_is_written, checkpoint_of_two,
                        *boost::unit_test::precondition(is_root)) {  // WX-2
  exported();
  const auto disk = folder / "disk";
  std::filesystem::create_directory(disk);
  const auto status = status_of_child([&] {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", disk.c_str(), "tmpfs", 0, "size=128k") != 0)
      return 1;
    std::filesystem::copy(run, disk + "/run");
    const auto text = text_of<std::exception>([&] { apps::import_weights(file, disk + "/run"); });
    const auto expected = "expected room for 1 MB of checkpoints in the folder '" + disk + "/run'";
    return contains(text, expected) && objects::read_manifest(disk + "/run").save == manifest.save ? 0 : 2;
  });
  BOOST_TEST(status == 0);
}

BOOST_AUTO_TEST_SUITE_END()
