// SPDX-License-Identifier: BSD-3-Clause
// What a node lets its peers do. The calls of these tests are those that a peer sends that has no good intentions.
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <ATen/ATen.h>
#include <torch/script.h>

#include <actors/linear_cluster.hpp>
#include <actors/temporary_folder.hpp>
#include <troupe/actors/calls/call_values.hpp>
#include <troupe/actors/node_access.hpp>
#include <troupe/actors/objects/checkpoint.hpp>
#include <troupe/actors/optimizer.hpp>
#include <troupe/actors/script_module.hpp>
#include <troupe/actors/support/refused_request.hpp>
#include <troupe/messages/messages.hpp>

using namespace troupe;
using namespace troupe::test;

namespace fs = std::filesystem;

namespace {

const std::string save_id = "0123456789abcdef";

/// The node "victim", with an optimizer that its peer "driver" has made, and a folder outside of the victim's data folder.
struct attack {
  temporary_folder all;
  std::string data = all / "data";
  std::string outside = all / "outside";
  std::string secret = outside + "/secret";
  std::optional<node> victim;
  std::optional<node> driver;
  object_id optimizer_there;

  explicit attack(
    bool with_data = true, const std::function<void(settings&)>& change = [](settings&) {}) {
    fs::create_directory(outside);
    write_text(secret, "secret");
    auto options = named_settings("victim");
    options.log_file = all / "log";
    if (with_data) options.data_dir = data;
    change(options);
    victim.emplace(options);
    add_module_type(*victim, "linear", [](const attributes& values) { return std::make_shared<linear>(values); });
    victim->functions().add("path_of", [](call_arguments& arguments) {
      return call_reply{{}, {{"path", arguments.here.data_path(get<std::string>(arguments.values, "path"))}}};
    });
    victim->functions().add("path_by_own_call", [](call_arguments& arguments) {
      return arguments.here.self().call("path_of", {}, arguments.values).get();
    });
    driver.emplace(named_settings("driver"));
    driver->join("127.0.0.1", victim->port());
    const auto there = driver->peer("victim");
    const auto number_in = [](const call_reply& made) { return calls::number_from(made.values, "object"); };
    const auto made = node_access::ask(there, requests::create_module{driver->id(), "linear"}, {}, layer(2, 2, 1)).get();
    optimizer_there = {
      victim->id(),
      number_in(call(requests::create_optimizer{driver->id(), "sgd", {{"lr", 0.1}}, {{1, {number_in(made)}, {}}}}))};
    call(requests::snapshot{save_id});  // what saves() writes
  }

  call_reply call(request what, std::vector<at::Tensor> tensors = {}, attributes values = {}) {
    return node_access::ask(driver->peer("victim"), std::move(what), std::move(tensors), std::move(values), optimizer_there)
      .get();
  }

  /// The text of the refusal. Checks that the call is refused, counted, and that nothing outside of the data folder has changed.
  std::string refusal(const request& what, std::vector<at::Tensor> tensors = {}, attributes values = {}) {
    const auto before = victim->status().requests_refused;
    std::string text;
    try {
      call(what, std::move(tensors), std::move(values));
    } catch (const error& problem) {
      text = problem.what();
      BOOST_TEST((problem.code() == errc::refused), text);
    }
    BOOST_TEST(victim->status().requests_refused == before + 1);
    for (const auto& word : {"call of '" + label_of(what) + "' on node 'victim'", std::string("refused to node 'driver'")})
      BOOST_TEST(contains(text, word), text);
    check_outside();
    return text;
  }

  void check_outside() const {
    BOOST_TEST(read_text(secret) == "secret");
    BOOST_TEST(std::distance(fs::directory_iterator(outside), {}) == 1);
    for (const auto& name : all.files()) BOOST_TEST((name == "data" || name == "outside" || name == "log"), name);
  }

  std::string refusal_of_path(const std::string& path) { return refusal(requests::function{"path_of"}, {}, {{"path", path}}); }
};

requests::save saves(const std::string& folder, const std::string& save = save_id) { return {save, folder}; }
requests::remove removes(const std::string& folder, const std::string& save = save_id) { return {save, folder, true}; }
requests::load loads(const std::string& folder, const std::string& save = save_id,
                     const support::file_digest& digest = {6, 0}) {
  return {save, folder, "a.safetensors", digest.bytes, digest.sum, support::checksum_name};
}

std::vector<request> requests_with_folder(const std::string& folder) {
  return {saves(folder), removes(folder), loads(folder), requests::expect_disk_space{folder}};
}

std::string one_script() {
  torch::jit::Module script("one");
  script.define("def forward(self, x):\n    return x\n");
  std::ostringstream out;
  script.save(out);
  return out.str();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(rights_of_peers)

BOOST_AUTO_TEST_CASE(a_node_without_a_data_folder_takes_no_path) {
  attack on(false);
  for (const auto& folder : {on.outside, std::string("parts")})
    for (const auto& what : requests_with_folder(folder)) {
      const auto text = on.refusal(what);
      for (const auto* words : {"has no data folder", "--data-dir FOLDER", "settings::data_dir"})
        BOOST_TEST(contains(text, words), text);
    }
  BOOST_TEST(contains(on.refusal_of_path(on.secret), "has no data folder"));
  BOOST_TEST(!fs::exists("parts"));
}

BOOST_AUTO_TEST_CASE(no_path_leads_out_of_the_data_folder) {
  attack on;
  fs::create_directory_symlink(on.outside, on.data + "/out");
  fs::create_directory_symlink(on.outside + "/none", on.data + "/dangling");
  fs::create_directories(on.data + "/deep");
  fs::create_directory_symlink("../../outside", on.data + "/deep/out");
  for (const auto& folder : {on.outside, std::string("../outside"), std::string("deep/../../outside"), on.data})
    for (const auto& what : requests_with_folder(folder))
      BOOST_TEST(contains(on.refusal(what), "leads out of this node's data folder"), folder);
  for (const std::string folder : {"out", "out/new", "dangling", "dangling/new", "deep/out", "deep/out/new"})
    for (const auto& what : requests_with_folder(folder)) BOOST_TEST(contains(on.refusal(what), "is a symbolic link"), folder);
  for (const auto& folder : {std::string(".ssh"), std::string("a\nb"), std::string(2000, 'x'), std::string(300, 'x')})
    for (const auto& what : requests_with_folder(folder)) BOOST_TEST(!on.refusal(what).empty(), folder);
  for (const auto& path : {on.secret, std::string("../outside/secret"), std::string("out/secret"), std::string("dangling")})
    BOOST_TEST(!on.refusal_of_path(path).empty(), path);
}

BOOST_AUTO_TEST_CASE(no_name_of_a_save_leads_to_another_file) {
  attack on;
  on.call(saves("run"));
  const auto own = on.data + "/run/" + objects::part_file_name("victim", save_id);
  BOOST_REQUIRE(fs::exists(own));
  for (const std::string save :
       {"../../../outside/x", "/x", "", "..", "0123456789abcde", "0123456789ABCDEF", "0123456789abcdef/"}) {
    const request all[] = {saves("run", save),       removes("run", save),        loads("run", save),
                           requests::snapshot{save}, requests::piece{save, 0, 1}, requests::receive{save, 0, 1},
                           requests::apply{save}};
    for (const auto& what : all)
      BOOST_TEST(contains(on.refusal(what, {at::zeros({1}, at::kByte)}), "16 hexadecimal digits"), save);
  }
  BOOST_TEST(std::distance(fs::recursive_directory_iterator(on.data), {}) == 2);
}

BOOST_AUTO_TEST_CASE(links_in_the_place_of_a_part_are_neither_read_nor_written_to_nor_followed_to_remove) {
  attack on;
  fs::create_directory(on.data + "/run");
  const auto part = on.data + "/run/" + objects::part_file_name("victim", save_id);
  fs::create_symlink(on.secret, part);
  BOOST_TEST(contains(on.refusal(loads("run")), "is a symbolic link"));
  fs::create_symlink(on.secret, part + ".part");
  on.call(saves("run"));
  on.check_outside();
  BOOST_TEST(!fs::is_symlink(part));
  fs::create_symlink(on.secret, on.data + "/run/" + objects::part_file_name("victim", "aaaaaaaaaaaaaaaa"));
  on.call(removes("run"));
  on.check_outside();
  BOOST_TEST(std::distance(fs::directory_iterator(on.data + "/run"), {}) == 1);
}

BOOST_AUTO_TEST_CASE(parts_of_other_nodes_are_neither_read_nor_removed) {
  attack on;
  fs::create_directory(on.data + "/run");
  const auto other = on.data + "/run/" + objects::part_file_name("another", save_id);
  write_text(other, "secret");
  on.call(removes("run", "aaaaaaaaaaaaaaaa"));
  BOOST_TEST(read_text(other) == "secret");
  for (const auto& folder : {std::string("run"), "run/another." + save_id + ".safetensors"}) {
    auto what = loads(folder);
    what.path = "run/another." + save_id + ".safetensors";  // only a name for errors
    const auto text = text_of<error>([&] { on.call(what); });
    BOOST_TEST((contains(text, "can't read 'run/victim." + save_id + ".safetensors'") || contains(text, "Not a directory")),
               text);
  }
}

BOOST_AUTO_TEST_CASE(a_part_of_a_size_that_makes_no_sense_takes_no_memory) {  // LO-6
  attack on;
  const auto refusal_of = [&](std::uint64_t total) {
    return on.refusal(requests::receive{save_id, 0, total}, {at::zeros({1}, at::kByte)});
  };
  BOOST_TEST(contains(refusal_of(std::uint64_t{1} << 40), "a part of 1099511627776 bytes was announced"));
  BOOST_TEST(contains(refusal_of(~std::uint64_t{0}), "18446744073709551615 bytes"));
}

BOOST_AUTO_TEST_CASE(a_part_that_a_peer_sends_runs_no_code) {  // PV-1
  attack on;
  torch::jit::Module script("Module");
  script.define("def __getstate__(self):\n    return 1\ndef __setstate__(self, state: int):\n    torch.from_file('" +
                on.outside + "/new', True, 4)\n");
  std::ostringstream out;
  script.save(out);
  const auto text = out.str();
  auto bytes = at::empty({static_cast<std::int64_t>(text.size())}, at::kByte);
  std::copy(text.begin(), text.end(), static_cast<char*>(bytes.mutable_data_ptr()));
  on.call(requests::receive{save_id, 0, text.size()}, {bytes});
  const auto what = loads("", save_id, objects::digest_of(bytes));
  BOOST_TEST(contains(text_of<error>([&] { on.call(what); }), "is not a checkpoint of troupe"));
  on.check_outside();
}

BOOST_AUTO_TEST_CASE(a_script_is_taken_only_by_a_node_that_allows_it) {
  const auto text = one_script();
  auto bytes = at::empty({static_cast<std::int64_t>(text.size())}, at::kByte);
  std::copy(text.begin(), text.end(), static_cast<char*>(bytes.mutable_data_ptr()));
  {
    attack on;
    const auto objects = on.victim->status().objects;
    const auto refused = on.refusal(requests::create_script{on.driver->id()}, {bytes});
    for (const auto* words : {"TorchScript is code", "--allow-scripts", "settings::allow_scripts"})
      BOOST_TEST(contains(refused, words), refused);
    BOOST_TEST(on.victim->status().objects == objects);
    torch::jit::Module script("one");
    BOOST_CHECK_THROW(create_script(on.driver->peer("victim"), script), error);
    create_script(on.victim->self(), script);  // the node's own program may
  }
  attack on(true, [](settings& with) { with.allow_scripts = true; });
  torch::jit::Module script("one");
  script.define("def forward(self, x):\n    return x\n");
  const auto x = at::ones({2});
  BOOST_TEST(at::equal(create_script(on.driver->peer("victim"), script).call("forward", {x}).get().tensor(0), x));
}

BOOST_AUTO_TEST_CASE(a_refusal_is_a_line_of_the_log_with_function_and_peer) {
  std::string log;
  {
    attack on(false);
    on.refusal(saves("parts"));
    on.driver.reset();
    on.victim.reset();
    log = read_text(on.all / "log");
  }
  BOOST_TEST(contains(log, "refused a request: 'troupe.optimizer.save' called by node 'driver': the request names a path"),
             log);
}

BOOST_AUTO_TEST_CASE(a_call_of_the_node_to_itself_may_name_any_path_unless_a_peer_is_behind_it) {
  attack on(false);
  const auto path = [&](peer who, const std::string& function) {
    return get<std::string>(who.call(function, {}, {{"path", on.secret}}).get().values, "path");
  };
  BOOST_TEST(path(on.victim->self(), "path_of") == on.secret);
  BOOST_TEST(path(on.victim->self(), "path_by_own_call") == on.secret);
  BOOST_TEST(on.victim->status().requests_refused == 0u);
  BOOST_TEST(contains(text_of<error>([&] { path(on.driver->peer("victim"), "path_by_own_call"); }), "has no data folder"));
  BOOST_CHECK_THROW(on.victim->data_path(on.secret), error);  // who asks is not known
}

BOOST_AUTO_TEST_CASE(a_node_with_a_data_folder_serves_its_peers) {
  attack on;
  on.call(requests::expect_disk_space{"run/a"});
  BOOST_TEST(fs::is_empty(on.data));
  const auto reply = on.call(saves("run/a"));
  on.call(loads("run/a", save_id, calls::digest_from(reply.values)));
  on.call(requests::apply{save_id});
  const auto path = on.driver->peer("victim").call("path_of", {}, {{"path", "run/x"}}).get();
  BOOST_TEST(get<std::string>(path.values, "path") == fs::canonical(on.data) / "run/x");
  BOOST_TEST(on.victim->status().requests_refused == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
