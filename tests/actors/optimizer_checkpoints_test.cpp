// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/optimizer_checkpoints.hpp>

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <actors/linear_cluster.hpp>
#include <actors/temporary_folder.hpp>
#include <troupe/actors/objects/checkpoint.hpp>
#include <troupe/actors/optimizer.hpp>
#include <troupe/actors/optimizer_shards.hpp>
#include <troupe/actors/optimizer_transfers.hpp>
#include <troupe/messages/messages.hpp>

using namespace troupe;
using namespace troupe::test;

namespace {

/// A layer of 5 MiB, which is more than one piece, on stage1, and a small one on stage2.
struct large_model {
  /// `data`: the data folder of the nodes.
  explicit large_model(const std::string& data = {}) : cluster([&](settings& with) { with.data_dir = data; }) {}

  linear_cluster cluster;
  std::vector<remote_module> modules{cluster.driver.peer("stage1").create("linear", layer(6, 200'000, 1)),
                                     cluster.driver.peer("stage2").create("linear", layer(4, 3, 2))};
  optimizer steps{cluster.driver, {"sgd", {{"lr", 0.1}}}, modules};

  std::vector<at::Tensor> parameters() const {
    std::vector<at::Tensor> all;
    for (const auto& one : modules)
      for (const auto& [name, parameter] : one.parameters()) all.push_back(parameter);
    return all;
  }
  void change() const {
    modules[0].set_parameters({{"bias", at::zeros({200'000})}});
    modules[1].set_parameters({{"bias", at::zeros({3})}});
  }
};

/// The folders of a driver and of its nodes.
struct two_folders {
  temporary_folder all;
  std::string driver = all / "driver";
  std::string nodes = all / "nodes";

  std::set<std::string> files_in(const std::string& folder) const {
    std::set<std::string> nodes_with_files;
    if (std::filesystem::exists(folder))
      for (const auto& one : std::filesystem::directory_iterator(folder)) {
        const auto name = one.path().filename().string();
        nodes_with_files.insert(name.substr(0, name.find('.')));
      }
    return nodes_with_files;
  }
  std::size_t count(const std::string& folder) const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
  }
};

using file_names = std::set<std::string>;

void require_equal(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  BOOST_REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) BOOST_REQUIRE_MESSAGE(at::equal(a[i], b[i]), "parameter " << i << " differs");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(checkpoints_of_optimizers)

BOOST_AUTO_TEST_CASE(parts_travel_to_the_folder_of_the_driver_and_back) {  // OM-6
  const two_folders folders;
  std::vector<at::Tensor> saved;
  {
    large_model model;
    const auto came = [&] {
      const auto stage1 = model.cluster.driver.status().peers.at(0);
      return stage1.bytes_received + stage1.bytes_read;
    };
    const auto before = came();
    model.steps.save(folders.driver, {{"step", 1}});
    BOOST_TEST(came() - before > 5u << 20);  // no node wrote the part itself
    saved = model.parameters();
  }
  BOOST_TEST((folders.files_in(folders.driver) == file_names{"checkpoint", "driver", "stage1", "stage2"}));
  large_model again;
  again.change();
  BOOST_TEST((again.steps.load(folders.driver) == attributes{{"step", 1}}));
  require_equal(again.parameters(), saved);
}

BOOST_AUTO_TEST_CASE(the_bytes_of_a_part_are_those_that_a_node_would_write) {
  const two_folders folders;
  large_model model;
  model.steps.save(folders.driver, {});
  const auto manifest = objects::read_manifest(folders.driver);
  const auto& entry = manifest.part("stage1");
  const auto part = objects::read_part(entry.path(folders.driver), entry.digest, manifest.save);
  BOOST_TEST((objects::write_part(folders.all / "same.safetensors", part) == entry.digest));
}

BOOST_AUTO_TEST_CASE(a_part_that_no_disk_can_hold_is_refused_before_a_byte_of_it_comes) {
  const temporary_folder folder;
  linear_cluster cluster;
  const auto module = cluster.driver.peer("stage1").create("linear", layer(2, 2, 1));
  const optimizer_shards parts(cluster.driver, {"sgd", {}}, {{.modules = {module}}}, {});
  objects::checkpoint_manifest manifest{objects::new_save_id(), {}, {}};
  for (const auto bytes : {std::uint64_t{1} << 60, ~std::uint64_t{0}}) {
    manifest.parts = {{"stage1", objects::part_file_name("stage1", manifest.save), {bytes, 0}}};
    const auto text = text_of<error>([&] { receive_parts(parts, folder.path(), manifest); });
    BOOST_TEST(contains(text, "expected room for"), text);
    BOOST_TEST(folder.files().empty());
  }
}

BOOST_AUTO_TEST_CASE(each_node_can_keep_its_part_in_a_folder_of_its_own) {  // OM-6
  const two_folders folders;
  std::vector<at::Tensor> saved;
  {
    large_model model(folders.all.path());
    model.steps.save(folders.driver, {{"step", 1}}, "nodes");
    saved = model.parameters();
  }
  BOOST_TEST((folders.files_in(folders.driver) == file_names{"checkpoint", "driver"}));
  BOOST_TEST((folders.files_in(folders.nodes) == file_names{"stage1", "stage2"}));
  large_model again(folders.all.path());
  again.change();
  BOOST_TEST((again.steps.load(folders.driver) == attributes{{"step", 1}}));
  require_equal(again.parameters(), saved);
  std::filesystem::remove_all(folders.nodes);
  const auto text = text_of<error>([&] { again.steps.load(folders.driver); });
  BOOST_TEST(contains(text, "can't read 'nodes/stage1."));
  BOOST_TEST(contains(text, "node 'stage1'"));
}

BOOST_AUTO_TEST_CASE(a_save_takes_the_place_of_the_one_before_it_wherever_its_parts_lie) {  // OK-2
  const two_folders folders;
  large_model model(folders.all.path());
  for (const auto* folder : {"nodes", "nodes", "others"}) model.steps.save(folders.driver, {}, folder);
  BOOST_TEST(folders.count(folders.nodes) == 0u);
  BOOST_TEST(folders.count(folders.all / "others") == 2u);
  write_text(folders.nodes + "/stage1.0123456789abcdef.safetensors.part", "left by a save that was killed");
  model.steps.save(folders.driver, {}, "nodes");
  BOOST_TEST(folders.count(folders.all / "others") == 0u);
  BOOST_TEST(folders.count(folders.nodes) == 2u);
  model.steps.save(folders.driver, {});
  BOOST_TEST(folders.count(folders.nodes) == 0u);
  BOOST_TEST(folders.count(folders.driver) == 4u);
  model.steps.load(folders.driver);
}

BOOST_AUTO_TEST_CASE(a_request_to_remove_other_parts_that_comes_late_leaves_those_of_a_later_save) {  // OK-2
  const two_folders folders;
  linear_cluster cluster([&](settings& with) { with.data_dir = folders.all.path(); });
  const auto block = cluster.driver.peer("stage1").create("linear", layer(3, 2, 1));
  optimizer_shards parts(cluster.driver, {"sgd", {}}, {{.modules = {block}}}, {});
  optimizer_checkpoints checkpoints(parts, folders.driver);
  checkpoints.write(checkpoints.snapshot({{"step", 1}}, "nodes"));
  const auto earlier = objects::read_manifest(folders.driver).save;
  checkpoints.write(checkpoints.snapshot({{"step", 2}}, "nodes"));
  parts.everywhere(requests::remove{earlier, "nodes", true}, [] {});
  BOOST_TEST(folders.count(folders.nodes) == 1u);
  bool applies = false;
  BOOST_TEST((checkpoints.load(1, applies) == attributes{{"step", 2}}));
}

BOOST_AUTO_TEST_CASE(a_save_that_fails_leaves_no_part_on_any_node) {  // OK-1
  const two_folders folders;
  large_model model(folders.all.path());
  model.steps.save(folders.driver, {{"step", 1}}, "nodes");
  const auto saved = model.parameters();
  for (const std::string node_folder : {"nodes", ""}) {
    std::filesystem::create_symlink("/dev/full", folders.driver + "/checkpoint.json.part");
    BOOST_TEST(contains(text_of<error>([&] { model.steps.save(folders.driver, {}, node_folder); }), "No space left on device"));
    BOOST_TEST(folders.count(folders.nodes) == 2u);
    BOOST_TEST(folders.count(folders.driver) == 2u);
  }
  model.change();
  BOOST_TEST((model.steps.load(folders.driver) == attributes{{"step", 1}}));
  require_equal(model.parameters(), saved);
}

BOOST_AUTO_TEST_CASE(a_folder_that_can_not_be_written_is_told_before_the_first_save_with_the_node) {
  const two_folders folders;
  large_model model(folders.all.path());
  model.steps.expect_disk_space(folders.driver);
  model.steps.expect_disk_space(folders.driver, "nodes");
  write_text(folders.all / "file", "");
  const auto on_nodes = text_of<error>([&] { model.steps.expect_disk_space(folders.driver, "file/parts"); });
  for (const auto* words : {"stage1", "can't open the folder 'file'", "Not a directory", "name another folder"})
    BOOST_TEST(contains(on_nodes, words));
  const auto on_driver = text_of<error>([&] { model.steps.expect_disk_space(folders.all / "file/run"); });
  for (const auto* words : {"node 'driver'", "expected to write checkpoints to the folder '", "file/run'"})
    BOOST_TEST(contains(on_driver, words));
  BOOST_TEST((folders.all.files() == file_names{"file"}));
}

BOOST_AUTO_TEST_CASE(a_folder_with_the_checkpoint_of_another_optimizer_is_refused_while_that_one_lives) {  // OK-3
  const two_folders folders;
  linear_cluster cluster([&](settings& with) { with.data_dir = folders.all.path(); });
  const auto block = cluster.driver.peer("stage1").create("linear", layer(3, 2, 1));
  std::optional<optimizer> first(std::in_place, cluster.driver, optimizer_settings{"adam", {}}, std::vector{block});
  optimizer second(cluster.driver, {"sgd", {}}, {block});
  first->save(folders.driver, {{"step", 1}}, "nodes");
  const auto files = folders.count(folders.driver);
  const auto refused = [&](const std::string& folder, const std::string& node_folder) {
    for (const auto& text : {text_of<error>([&] { second.save(folder, {}, node_folder); }),
                             text_of<error>([&] { second.expect_disk_space(folder, node_folder); })})
      BOOST_TEST(contains(text, "the checkpoint of another optimizer, 'adam' of nodes 'driver', 'stage1'; save each optimizer"),
                 text);
  };
  refused(folders.driver, "");
  refused(folders.driver + "/../driver", "others");
  refused(folders.all / "other", "nodes");  // the parts on the nodes are in the folder of the first optimizer
  BOOST_TEST(folders.count(folders.driver) == files);
  BOOST_TEST((first->load(folders.driver) == attributes{{"step", 1}}));
  second.save(folders.all / "other", {}, "others");
  first->save(folders.driver, {{"step", 2}}, "nodes");
  // An optimizer that has loaded keeps the checkpoint too.
  first.reset();
  first.emplace(cluster.driver, optimizer_settings{"adam", {}}, std::vector{block});
  first->load(folders.driver);
  refused(folders.driver, "");
  first.reset();
  second.save(folders.driver, {}, "others");
}

BOOST_AUTO_TEST_SUITE_END()
