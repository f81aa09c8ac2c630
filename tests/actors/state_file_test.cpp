// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/state_file.hpp>

#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>

#include <boost/test/unit_test.hpp>

#include <actors/linear_cluster.hpp>
#include <actors/size_limit.hpp>
#include <actors/temporary_folder.hpp>
#include <troupe/actors/objects/checkpoint.hpp>
#include <troupe/actors/optimizer.hpp>

using namespace troupe;
using namespace troupe::test;

namespace {

bool runs(const std::string& command) {
  return std::system((command + " 2>&1").c_str()) == 0;  // NOLINT(cert-env33-c,concurrency-mt-unsafe)
}

/// A Python that has the package safetensors: TROUPE_PYTHON, that of `make test-python`, that of .venv, or the system's. Empty if none has.
std::string python() {
  const char* named = std::getenv("TROUPE_PYTHON");  // NOLINT(concurrency-mt-unsafe)
  const std::string source = TROUPE_SOURCE_DIR;
  for (const std::string& each : {std::string(named == nullptr ? "" : named), source + "/build/python/bin/python",
                                  source + "/.venv/bin/python", std::string("python3")})
    if (!each.empty() && runs(each + " -c 'import safetensors.numpy' >/dev/null")) return each;
  return {};
}

const auto with_python = boost::unit_test::label("python");

boost::test_tools::assertion_result python_is_there(boost::unit_test::test_unit_id) {
  if (!python().empty()) return true;
  std::puts("SKIPPED: no Python here has the packages safetensors and numpy; name one that has them in TROUPE_PYTHON");
  return false;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(state_files)

BOOST_AUTO_TEST_CASE(a_state_comes_back_from_its_file) {
  const temporary_folder folder;
  const auto path = folder / "state.safetensors";
  save_state(path, {{"weight", at::arange(6, at::kFloat).reshape({2, 3}).t()}, {"steps", at::full({}, 3, at::kLong)}});
  const auto state = load_state(path);
  BOOST_REQUIRE(state.size() == 2u);
  BOOST_TEST(state[0].first == "steps");
  BOOST_TEST(state[1].second.equal(at::arange(6, at::kFloat).reshape({2, 3}).t()));
}

BOOST_AUTO_TEST_CASE(a_state_that_can_not_be_written_leaves_the_file_as_it_was) {  // SX-1
  const temporary_folder folder;
  const auto path = folder / "state.safetensors";
  write_text(path, "before");
  BOOST_TEST(contains(text_of<error>([&] { save_state(folder / "none/state", {{"w", {}}}); }), "'w': it is undefined"));
  BOOST_TEST(contains(text_of<error>([&] { save_state(path, {{"w", {}}}); }), "'w': it is undefined"));
  {
    const size_limit full(100);
    BOOST_TEST(contains(text_of<error>([&] { save_state(path, {{"w", at::ones({1000})}}); }), "File too large"));
  }
  BOOST_TEST(read_text(path) == "before");
  BOOST_TEST((folder.files() == std::set<std::string>{"state.safetensors"}));
}

BOOST_AUTO_TEST_CASE(a_file_that_is_no_state_is_named) {
  const temporary_folder folder;
  const auto path = folder / "a";
  BOOST_TEST(contains(text_of<error>([&] { load_state(path); }), "can't read '" + path + "': No such file"));
  write_text(path, "PK");
  BOOST_TEST(contains(text_of<error>([&] { load_state(path); }),
                      "'" + path + "' is no safetensors file: the file: expected at least 8 bytes, got 2"));
}

BOOST_AUTO_TEST_CASE(python_opens_a_part_and_its_file_loads_into_a_remote_module,
                     *with_python* boost::unit_test::precondition(python_is_there)) {
  const temporary_folder folder;
  linear_cluster cluster;
  const auto layer_there = cluster.driver.peer("stage1").create("linear", layer(4, 3, 5));
  optimizer steps(cluster.driver, {"adam", {{"lr", 0.1}}}, {layer_there});
  {
    context pass(cluster.driver);
    pass.backward({layer_there.call("forward", {at::ones({2, 4})}).get().tensors.at(0).sum()}).get();
    steps.step(pass);
  }
  steps.save(folder.path(), {});
  const auto manifest = objects::read_manifest(folder.path());
  const auto part = manifest.part("stage1").path(folder.path());
  const auto file = folder / "from_python.safetensors";
  BOOST_REQUIRE(runs(python() + " " TROUPE_SOURCE_DIR "/tests/python/weights.py " + part + " " + file));
  const auto trained = layer_there.state();
  layer_there.set_state(load_state(file));
  const auto state = layer_there.state();
  for (std::size_t i = 0; i < state.size(); ++i)
    BOOST_TEST(state[i].second.equal(trained[i].second + 1), state[i].first);  // weights.py adds 1
}

BOOST_AUTO_TEST_SUITE_END()
