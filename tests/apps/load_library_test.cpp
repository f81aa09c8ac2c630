// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <torch/script.h>

#include <troupe/troupe.hpp>

#include "actors/loopback_nodes.hpp"
#include "apps/ready_line.hpp"
#include "support/contains.hpp"
#include "support/program.hpp"
#include "support/temporary_folder.hpp"

using namespace std::chrono_literals;
using troupe::apps::test::content_of;
using troupe::apps::test::program;
using troupe::apps::test::temporary_folder;
using troupe::test::contains;
using troupe::test::says;

namespace {

/// The file of a library of this test.
std::string library(const std::string& name) {
  const char* folder = std::getenv("TROUPE_LIBRARIES");
  if (folder == nullptr) throw std::runtime_error("set TROUPE_LIBRARIES to the folder of the libraries; ctest does");
  return std::string(folder) + "/lib" + name + ".so";
}

/// A node of the program `troupe`, and a driver that has joined it.
struct loaded_node {
  explicit loaded_node(std::vector<std::string> arguments) : node(whole(std::move(arguments))) {
    using troupe::apps::ready_line;
    const auto ready = ready_line::parse(node.line_that([](auto& line) { return ready_line::parse(line).has_value(); }));
    BOOST_REQUIRE_MESSAGE(ready, "the node said: " << node.text());
    driver.join(ready->host, ready->port);
  }

  static std::vector<std::string> whole(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"node", "--name", "stage"});
    return arguments;
  }

  program node;
  troupe::node driver{troupe::test::loopback_settings("driver")};
  troupe::peer stage() { return driver.peer("stage"); }
};

void check_refused(const std::string& file, const std::vector<std::string>& words) {
  program node({"node", "--name", "a", "--log-level", "error", "--load", file});
  BOOST_TEST(node.how_it_ends() == "exited with 1");
  BOOST_TEST(node.lines().size() == 1u, node.text());
  BOOST_TEST(node.text().starts_with("troupe: the library '" + file + "' "), node.text());
  for (const auto& word : words) BOOST_TEST(contains(node.text(), word), "expected '" << word << "' in: " << node.text());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(libraries)

BOOST_AUTO_TEST_CASE(a_node_serves_the_modules_and_functions_of_several_libraries) {
  loaded_node all({"--load", library("example_modules"), "--load", library("test_functions")});
  const auto x = at::arange(4, at::kFloat);
  BOOST_TEST(at::equal(all.stage().call("twice", {x}).get().tensor(0), 2 * x));
  auto encoder = all.stage().create("encoder", {{"inputs", 4}, {"width", 3}});
  BOOST_TEST(encoder.parameters().size() == 2u);
  troupe::context pass(all.driver);
  auto leaf = at::ones({2, 4}).set_requires_grad(true);
  const auto hidden = encoder.call("forward", {leaf}).get().tensor(0);
  pass.backward({hidden.sum()}).get();
  const auto weight = encoder.parameters().front().second;
  const auto expected = (1 - hidden.detach().square()).matmul(weight);
  BOOST_TEST(at::allclose(pass.gradient(leaf), expected, 1e-5, 1e-6));  // the drawn weights may cancel in the sums
}

BOOST_AUTO_TEST_CASE(a_file_of_the_working_folder_needs_no_slash) {
  const auto path = std::filesystem::path(library("test_functions"));
  program node({"-c", "cd \"$1\" && exec \"$0\" node --name a --load " + path.filename().string(),
                troupe::apps::test::program_under_test(), path.parent_path().string()},
               "sh");
  BOOST_TEST(!node.line_with("a listens on ").empty(), node.text());
}

BOOST_AUTO_TEST_CASE(a_node_has_the_libraries_of_troupe_that_it_was_told_to_load) {  // NC-1, LB-3
  {
    loaded_node plain({});
    for (const auto* type : {"charlm.stage", "probe"})
      BOOST_CHECK_EXCEPTION(plain.stage().create(type), troupe::error, says("has no module type '" + std::string(type) + "'"));
  }
  loaded_node all({"--load", "charlm", "--load", "probe"});
  const troupe::attributes smallest{{"vocabulary", 1}, {"blocks", 1}, {"width", 1}, {"heads", 1},     {"context", 1},
                                    {"stage", 0},      {"stages", 1}, {"seed", 0},  {"device", "cpu"}};
  BOOST_TEST(!all.stage().create("charlm.stage", smallest).parameters().empty());
  const auto x = at::arange(4, at::kFloat);
  BOOST_TEST(at::equal(all.stage().create("probe").call("twice", {x}).get().tensor(0), 2 * x));
}

BOOST_AUTO_TEST_CASE(a_library_of_troupe_is_searched_in_no_other_folder) {  // LB-3
  const temporary_folder folder;
  for (const auto* name : {"mine", "libtroupe_mine.so"})
    std::filesystem::create_symlink(library("test_functions"), folder.path() / name);
  program node({"-c", "cd \"$1\" && LD_LIBRARY_PATH=\"$1:$LD_LIBRARY_PATH\" exec \"$0\" node --name a --load mine",
                troupe::apps::test::program_under_test(), folder.path().string()},
               "sh");
  BOOST_TEST(node.how_it_ends() == "exited with 1", node.text());
  BOOST_TEST(contains(node.text(), "neither is there"), node.text());
}

BOOST_AUTO_TEST_CASE(a_library_that_cannot_serve_is_named_with_the_reason) {  // LB-1, LB-2
  temporary_folder folder;
  check_refused((folder.path() / "libnone.so").string(), {"there is none", "--load"});
  const auto beside = std::filesystem::path(troupe::apps::test::program_under_test()).parent_path() / "libtroupe_none.so";
  check_refused("none", {"is expected to be " + beside.string() + " or ", "neither is there", "--load ./libmine.so"});
  check_refused("libno_such_library.so", {"neither in the working folder", "No such file", "--load"});
  check_refused(folder.write("libtext.so", "this is a text"), {"can't be loaded", "troupe::loadable"});
  check_refused(library("test_no_entry"), {"exports no function 'troupe_library'", "TROUPE_LIBRARY"});
  check_refused(library("test_missing_symbol"), {"nobody_defines_this", "link what it needs"});
  check_refused(library("test_other_troupe"),
                {"built for troupe 0.0.9", "this program is troupe 0.", "build the library again"});
  check_refused(library("test_throws"), {"has thrown", "'double'"});
}

BOOST_AUTO_TEST_CASE(a_function_writes_below_the_data_folder_and_nowhere_else) {  // DA-1, DA-2
  temporary_folder outer;
  const auto data = outer.path() / "data";
  loaded_node all({"--load", library("test_functions"), "--data-dir", data.string()});
  const auto path = troupe::get<std::string>(all.stage().call("write", {}, {{"path", "x.txt"}}).get().values, "path");
  BOOST_TEST(path == (std::filesystem::canonical(data) / "x.txt").string());
  BOOST_TEST(content_of(path) == "written\n");
  BOOST_CHECK_EXCEPTION(all.stage().call("write", {}, {{"path", "../x.txt"}}).get(), troupe::error,
                        says("'../x.txt' leads out of this node's data folder", "refused to node 'driver'"));
  BOOST_TEST(!std::filesystem::exists(outer.path() / "x.txt"));
}

BOOST_AUTO_TEST_CASE(checkpoints_of_a_driver_stay_below_the_data_folder) {  // DA-2
  temporary_folder outer;
  const auto data = outer.path() / "data";
  loaded_node all({"--load", library("example_modules"), "--data-dir", data.string()});
  auto encoder = all.stage().create("encoder", {{"inputs", 4}, {"width", 3}});
  troupe::optimizer optimizer{all.driver, {"sgd", {{"lr", 0.1}}}, {encoder}, {}};
  const auto checkpoint = (outer.path() / "checkpoint").string();
  optimizer.save(checkpoint, {}, "run");
  BOOST_TEST(!std::filesystem::is_empty(data / "run"));
  optimizer.load(checkpoint);
  for (const auto& outside : {(outer.path() / "elsewhere").string(), std::string("../elsewhere")}) {
    const auto refusal = says("leads out of this node's data folder", "refused to node 'driver'");
    BOOST_CHECK_EXCEPTION(optimizer.save(checkpoint, {}, outside), troupe::error, refusal);
    BOOST_CHECK_EXCEPTION(optimizer.expect_disk_space(checkpoint, outside), troupe::error, refusal);
  }
  BOOST_TEST(!std::filesystem::exists(outer.path() / "elsewhere"));
  optimizer.load(checkpoint);
}

BOOST_AUTO_TEST_CASE(a_node_without_options_takes_neither_paths_nor_scripts) {
  torch::jit::Module script("same");
  script.define("def forward(self, x):\n    return x\n");
  temporary_folder outer;
  {
    loaded_node all({"--load", library("example_modules"), "--load", library("test_functions")});
    BOOST_CHECK_EXCEPTION(create_script(all.stage(), script), troupe::error,
                          says("refused to node 'driver'", "--allow-scripts"));
    const auto path = (outer.path() / "x.txt").string();
    BOOST_CHECK_EXCEPTION(all.stage().call("write", {}, {{"path", path}}).get(), troupe::error,
                          says("refused to node 'driver'", "--data-dir FOLDER"));
    auto encoder = all.stage().create("encoder", {{"inputs", 4}, {"width", 3}});
    troupe::optimizer optimizer{all.driver, {"sgd", {{"lr", 0.1}}}, {encoder}, {}};
    const auto checkpoint = (outer.path() / "checkpoint").string();
    BOOST_CHECK_EXCEPTION(optimizer.save(checkpoint, {}, "run"), troupe::error,
                          says("'troupe.optimizer.save' on node 'stage'", "--data-dir FOLDER"));
    BOOST_TEST(all.stage().status().requests_refused == 4u);  // the removal of what the failed save has left, too
    BOOST_TEST(!all.node.line_with("refused a request: 'troupe.create_script' called by node 'driver'").empty());
    optimizer.save(checkpoint, {});
    BOOST_TEST(!std::filesystem::exists(path));
  }
  loaded_node all({"--allow-scripts"});
  BOOST_TEST(at::equal(create_script(all.stage(), script).call("forward", {at::ones({2})}).get().tensor(0), at::ones({2})));
}

BOOST_AUTO_TEST_SUITE_END()
