// SPDX-License-Identifier: BSD-3-Clause
// Saves that are written beside the steps of an optimizer.
#include <troupe/actors/optimizer_saves.hpp>

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <actors/linear_cluster.hpp>
#include <actors/loopback_nodes.hpp>
#include <actors/same_tensors.hpp>
#include <actors/temporary_folder.hpp>
#include <troupe/actors/objects/checkpoint.hpp>
#include <troupe/actors/optimizer.hpp>
#include <troupe/actors/support/blocking_observer.hpp>

#include "support/captured_stderr.hpp"
#include "support/no_more_threads.hpp"

using namespace troupe;
using namespace troupe::test;
namespace data = boost::unit_test::data;

namespace {

/// What the disk of this program does before it makes a file safe. False: the disk fails.
using disk_rule = std::function<bool(int descriptor)>;
std::mutex mutex;
std::shared_ptr<const disk_rule> current_rule;  // guarded by mutex

class disk {
 public:
  explicit disk(disk_rule rule) { set(std::make_shared<const disk_rule>(std::move(rule))); }
  ~disk() { set(nullptr); }
  disk(const disk&) = delete;
  disk& operator=(const disk&) = delete;

 private:
  static void set(std::shared_ptr<const disk_rule> rule) {
    const std::lock_guard lock(mutex);
    current_rule = std::move(rule);
  }
};

/// A disk that makes no file safe before open().
class held_disk {
 public:
  ~held_disk() { open(); }
  void wait_for_writer() { came_.get_future().wait(); }
  void open() {
    std::call_once(opens_, [this] { open_.set_value(); });
  }

 private:
  std::once_flag comes_, opens_;
  std::promise<void> came_, open_;
  std::shared_future<void> is_open_ = open_.get_future().share();
  disk held_{[this](int) {
    std::call_once(comes_, [this] { came_.set_value(); });
    is_open_.wait();
    return true;
  }};
};

}  // namespace

// Replaces fsync() of the C library in this program.
extern "C" int fsync(int descriptor) {
  const auto rule = [] {
    const std::lock_guard lock(mutex);
    return current_rule;
  }();
  if (rule == nullptr || (*rule)(descriptor)) return static_cast<int>(::syscall(SYS_fsync, descriptor));
  errno = EIO;
  return -1;
}

namespace {

constexpr auto disk_error = "Input/output error";

/// A layer on each of two nodes with one worker, and a scale of the driver.
struct model {
  temporary_folder all;
  std::string folder = all / "driver";
  linear_cluster cluster{[this](settings& with) {
    with.data_dir = all.path();
    with.short_work = {};  // each call needs a worker
  }};
  int width;
  std::vector<remote_module> modules{cluster.driver.peer("stage1").create("linear", layer(width, 2 * width, 1)),
                                     cluster.driver.peer("stage2").create("linear", layer(2 * width, width, 2))};
  at::Tensor scale = at::ones({width}).requires_grad_();
  std::optional<optimizer> steps{std::in_place, cluster.driver, optimizer_settings{"adam", {{"lr", 0.01}}}, modules,
                                 named_tensors{{"scale", scale}}};

  explicit model(int width = 3) : width(width) {}

  void backward(context& pass, int number) {
    auto hidden = at::randn({256, width}, at::detail::createCPUGenerator(static_cast<std::uint64_t>(number)));
    for (const auto& one : modules) hidden = one.call("forward", {hidden}).get().tensor(0);
    pass.backward({(hidden * scale).square().sum()}).get();
  }
  void step(int number) {
    context pass(cluster.driver);
    backward(pass, number);
    steps->step(pass);
  }
  void make_steps(int from, int to) {
    for (int number = from; number < to; ++number) step(number);
  }
  std::vector<at::Tensor> parameters() const {
    std::vector<at::Tensor> found{scale.detach().clone()};
    for (const auto& one : modules)
      for (const auto& [name, parameter] : one.parameters()) found.push_back(parameter);
    return found;
  }
  std::int64_t load(const std::string& from) { return get<std::int64_t>(steps->load(from), "step"); }
};

/// Where the nodes write their parts: "": to the folder of the driver.
const std::vector<std::string> node_folders{"", "nodes"};

/// Calls `run` when this thread waits for a future.
class on_wait : public blocking_observer {
 public:
  explicit on_wait(std::function<void()> run) : run_(std::move(run)) { current() = this; }
  ~on_wait() override { current() = nullptr; }
  void blocked() override { run_(); }
  void resumed() override {}

 private:
  std::function<void()> run_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(saves_of_optimizers)

BOOST_DATA_TEST_CASE(a_checkpoint_has_the_state_at_its_start_though_steps_go_on, data::make(node_folders),
                     node_folder) {  // BK-1, BK-2, OM-9
  model one;
  one.make_steps(0, 2);
  const auto saved = one.parameters();
  held_disk disk;
  const auto whole = one.steps->start_save(one.folder, {{"step", 2}}, node_folder);
  disk.wait_for_writer();
  one.make_steps(2, 5);
  const auto later = one.parameters();
  BOOST_TEST(!whole.ready());
  disk.open();
  whole.get();
  model undisturbed;
  undisturbed.make_steps(0, 5);
  require_same(later, undisturbed.parameters());

  BOOST_TEST(one.load(one.folder) == 2);
  require_same(one.parameters(), saved);
  one.make_steps(2, 5);
  require_same(one.parameters(), later);
}

BOOST_AUTO_TEST_CASE(at_every_moment_the_checkpoint_is_the_one_before_or_the_whole_new_one) {  // CP-1, CP-2, OM-9
  model one;
  one.step(0);
  one.steps->save(one.folder, {{"step", 1}});
  const auto before = one.parameters();
  one.step(1);
  const auto after = one.parameters();
  std::vector<std::string> moments;  // copies of the folder
  {
    const disk copied([&](int) {
      moments.push_back(one.all / ("moment" + std::to_string(moments.size())));
      std::filesystem::copy(one.folder, moments.back());
      return true;
    });
    one.steps->start_save(one.folder, {{"step", 2}}).get();
  }
  BOOST_TEST(moments.size() == 8u);  // three parts and the manifest: the file, then its name in the folder
  for (const auto& moment : moments) {
    const auto step = one.load(moment);
    BOOST_TEST(step == (moment == moments.back() ? 2 : 1));
    require_same(one.parameters(), step == 1 ? before : after);
  }
}

BOOST_AUTO_TEST_CASE(the_next_save_a_load_and_the_end_wait_for_a_save) {  // BK-3
  const temporary_folder folder;
  node driver(named_settings("driver"));
  const auto weight = at::ones({2}).requires_grad_();
  std::optional<optimizer> steps(std::in_place, driver, optimizer_settings{"sgd", {}}, std::vector<remote_module>{},
                                 named_tensors{{"weight", weight}});
  const auto start = [&](int step) { return steps->start_save(folder.path(), {{"step", step}}); };
  {
    held_disk disk;
    const on_wait opens([&] { disk.open(); });
    const auto first = start(1);
    const auto second = start(2);
    BOOST_TEST(first.ready());
    second.get();
  }
  const auto opened_for_writer = [](held_disk& disk) {
    return std::async(std::launch::async, [&disk] {
      disk.wait_for_writer();
      disk.open();
    });
  };
  {
    held_disk disk;
    start(3);
    const auto opening = opened_for_writer(disk);
    BOOST_TEST((steps->load(folder.path()) == attributes{{"step", 3}}));
  }
  {
    const no_more_threads none;
    BOOST_TEST(start(3).ready());  // this thread has written it
  }
  held_disk disk;
  start(4);
  const auto opening = opened_for_writer(disk);
  steps.reset();
  BOOST_TEST((objects::read_manifest(folder.path()).about == attributes{{"step", 4}}));
}

BOOST_AUTO_TEST_CASE(a_continuation_of_a_save_may_end_the_optimizer) {  // BK-3
  const temporary_folder folder;
  node driver(named_settings("driver"));
  const named_tensors local{{"weight", at::ones({2}).requires_grad_()}};
  const auto ended = std::make_shared<std::promise<void>>();
  const auto end = [ended](optimizer* last) {
    delete last;
    ended->set_value();
  };
  held_disk disk;
  std::shared_ptr<optimizer> steps(new optimizer(driver, optimizer_settings{"sgd", {}}, {}, local), end);
  const auto whole = steps->start_save(folder.path(), {{"step", 1}});
  whole.then([steps](const future<done>&) mutable { steps.reset(); });
  steps.reset();
  disk.open();
  BOOST_TEST((ended->get_future().wait_for(std::chrono::seconds(10)) == std::future_status::ready));
  BOOST_TEST((objects::read_manifest(folder.path()).about == attributes{{"step", 1}}));
}

BOOST_AUTO_TEST_CASE(an_error_of_a_save_is_told_once) {  // BK-4, OM-5, OK-1
  model one;
  const disk broken([](int) { return false; });
  const auto start = [&] { return one.steps->start_save(one.folder, {}, "nodes"); };
  const auto failed = [&] {
    const auto save = start();
    BOOST_TEST_REQUIRE(becomes_true([&] { return save.ready(); }));
  };
  BOOST_TEST(contains(text_of<error>([&] { start().get(); }), disk_error));
  one.step(0);

  failed();
  const auto before = one.parameters();
  {
    context pass(one.cluster.driver);
    one.backward(pass, 1);
    one.steps->gather(pass);
  }
  BOOST_TEST(contains(text_of<error>([&] { one.steps->step(); }), disk_error));
  require_same(one.parameters(), before);
  one.steps->step();  // with what was gathered
  BOOST_TEST(!at::equal(one.scale, before[0]));

  failed();
  const auto next = text_of<error>([&] { one.steps->save(one.folder, {}); });
  BOOST_TEST(contains(next, disk_error), next);
  BOOST_TEST(std::filesystem::is_empty(one.folder));
  BOOST_TEST(std::filesystem::is_empty(one.all / "nodes"));
  one.step(2);

  failed();
  const auto shown = captured_stderr([&] { one.steps.reset(); });
  BOOST_TEST(contains(shown, "a save of an optimizer threw: "), shown);
  BOOST_TEST(contains(shown, disk_error), shown);
}

BOOST_DATA_TEST_CASE(a_step_waits_for_no_slow_disk, data::make(node_folders), node_folder) {  // BK-2
  constexpr double bytes_per_second = 20e6;
  using clock = std::chrono::steady_clock;
  const auto seconds_of = [](auto&& run) {
    const auto begin = clock::now();
    run();
    return std::chrono::duration<double>(clock::now() - begin).count();
  };
  model one(1024);  // 48 MB with Adam's state
  int number = 0;
  const auto seconds_of_step = [&] { return seconds_of([&] { one.step(number++); }); };
  for (int i = 0; i < 3; ++i) one.step(number++);
  std::vector<double> alone;
  for (int i = 0; i < 15; ++i) alone.push_back(seconds_of_step());
  std::nth_element(alone.begin(), alone.begin() + 7, alone.end());
  const auto usual = alone[7];

  const disk slow([&](int descriptor) {
    struct stat what {};
    ::fstat(descriptor, &what);
    std::this_thread::sleep_for(std::chrono::duration<double>(static_cast<double>(what.st_size) / bytes_per_second));
    return true;
  });
  double waited = 3 * usual;
  for (int attempt = 0; attempt < 3 && waited > 2 * usual; ++attempt) {  // something else may run on this host
    std::optional<future<done>> whole;
    const auto copied = seconds_of([&] { whole = one.steps->start_save(one.folder, {}, node_folder); });
    const auto first = copied + seconds_of_step();
    auto longest = first;
    int beside = 1;
    const auto rest = seconds_of([&] {
      for (; !whole->ready(); ++beside) longest = std::max(longest, seconds_of_step());
    });
    whole->get();
    waited = longest - usual;
    BOOST_TEST_MESSAGE("a step: " << 1e3 * usual << " ms, at most " << 1e3 * *std::max_element(alone.begin(), alone.end())
                                  << "; the copy: " << 1e3 * copied << " ms; the longest of " << beside
                                  << " beside the save: " << 1e3 * longest << " ms; written for " << first + rest
                                  << " s; waited: " << waited / usual << " steps");
    BOOST_TEST(first + rest > 1);
  }
  BOOST_TEST(waited <= 2 * usual);
}

BOOST_AUTO_TEST_SUITE_END()
