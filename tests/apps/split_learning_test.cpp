// SPDX-License-Identifier: BSD-3-Clause
// Two parties in one process: their tables, the cut between them, and the losses they get.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <ATen/ATen.h>

#include <troupe/troupe.hpp>

#include "actors/loopback_nodes.hpp"
#include "actors/temporary_folder.hpp"
#include "apps/split/cut.hpp"
#include "apps/split/feature_side.hpp"
#include "apps/split/label_side.hpp"
#include "support/contains.hpp"

using namespace troupe;
using namespace troupe::apps::split;
using troupe::test::contains;

namespace {

/// Both tables of an example.
struct data {
  test::temporary_folder folder;
  table features;
  table labels;

  explicit data(std::int64_t rows = 300) {
    write_example(folder / "", rows, 7);
    features = read_table(folder / std::string("features.csv"));
    labels = read_table(folder / std::string("labels.csv"));
  }
};

/// A node for each party.
struct parties {
  label_side served;
  node labels;
  node features;

  parties(const data& all, const training_parameters& how, const cut_options& of_labels)
      : served(all.labels, how.rate, of_labels, how.seed, 3),
        labels(settings_of("labels")),
        features(test::loopback_settings("features")) {
    features.join("127.0.0.1", labels.port());
  }

  settings settings_of(const std::string& name) {
    auto result = test::loopback_settings(name);
    result.prepare = [this](node& here) {
      here.functions().add(label_side::name, [this](call_arguments& arguments) { return served.forward(arguments); });
    };
    return result;
  }
};

training_parameters short_training() {
  training_parameters result;
  result.epochs = 3;
  result.seed = 1;
  result.noise_seed = 2;
  return result;
}

std::string problem_of_table(const std::string& text, table (*read)(const std::string&) = read_table) {
  const test::temporary_folder folder;
  const std::string file = folder / std::string("table.csv");
  std::ofstream(file) << text;
  try {
    read(file);
  } catch (const std::runtime_error& problem) {
    return std::string(problem.what()).substr(file.size());
  }
  return "none";
}

void no_retry(const failed_step& failed) { BOOST_ERROR("step failed: " + failed.reason); }

}  // namespace

BOOST_AUTO_TEST_SUITE(split_learning)

BOOST_AUTO_TEST_CASE(two_parties_get_the_losses_of_one_process) {
  const data all;
  for (const bool shields : {false, true}) {
    auto how = short_training();
    const cut_options of_labels = shields ? cut_options{0.01, 0.5} : cut_options{};
    if (shields) how.how = {2.0, 0.1};
    parties both(all, how, of_labels);
    feature_side party(both.features, "labels", all.features, how, {});
    std::vector<double> losses;
    for (std::int64_t epoch = 1; epoch <= how.epochs; ++epoch) losses.push_back(party.train(epoch, no_retry));
    const auto expected = train_alone(all.features, all.labels, how, of_labels, 3, [](std::int64_t, double) {});
    BOOST_TEST(losses == expected, boost::test_tools::per_element());
    if (!shields) BOOST_TEST(losses.back() < losses.front());
  }
}

BOOST_AUTO_TEST_CASE(numbers_without_a_seed_are_normal_and_new_each_time) {  // NN-1
  constexpr std::int64_t many = 100'000;
  const auto seeded = normal_numbers(5).draw({many});
  const auto unseeded = normal_numbers(std::nullopt).draw({many});
  BOOST_TEST(at::equal(seeded, normal_numbers(5).draw({many})));
  BOOST_TEST(!at::equal(unseeded, normal_numbers(std::nullopt).draw({many})));
  for (const auto& each : {seeded, unseeded}) {
    BOOST_TEST(each.scalar_type() == at::kFloat);
    // Each limit is about six standard deviations of what is measured.
    BOOST_TEST(std::abs(each.mean().item<double>()) < 0.02);
    BOOST_TEST(std::abs(each.pow(2).mean().item<double>() - 1) < 0.03);
    BOOST_TEST(std::abs(each.pow(4).mean().item<double>() - 3) < 0.2);
    BOOST_TEST(std::abs(each.lt(-1).to(at::kDouble).mean().item<double>() - 0.158655) < 0.007);
    BOOST_TEST(std::abs((each.slice(0, 1) * each.slice(0, 0, many - 1)).mean().item<double>()) < 0.02);
  }
}

BOOST_AUTO_TEST_CASE(parties_without_seeds_learn) {
  const data all;
  auto how = short_training();
  how.seed.reset();
  how.noise_seed.reset();
  how.how = {2.0, 0.1};
  const auto losses = train_alone(all.features, all.labels, how, {}, std::nullopt, [](std::int64_t, double) {});
  BOOST_TEST(losses.back() < losses.front());
  BOOST_TEST(losses != train_alone(all.features, all.labels, how, {}, std::nullopt, [](std::int64_t, double) {}));
}

BOOST_AUTO_TEST_CASE(a_step_is_learned_once_however_often_it_is_asked_for) {  // LF-1
  const data all;
  parties both(all, short_training(), {});
  const auto there = both.features.peer("labels");
  const auto people = at::tensor(std::vector<std::int64_t>{1, 2, 3});
  const auto ask = [&](const char* what, std::int64_t step, std::vector<at::Tensor> tensors = {}) {
    return there.call(label_side::name, std::move(tensors), {{"do", std::string(what)}, {"step", step}}).get();
  };
  const auto learned = [&](std::int64_t step) {
    return ask("loss", step, {at::ones({3, width_of_cut}), people}).values.contains("learned");
  };
  const auto loss_now = [&] { return ask("loss", 9, {at::ones({3, width_of_cut}), people}).tensor(0).item<float>(); };
  const auto before = loss_now();
  BOOST_TEST(!learned(1));
  float after = 0;
  {
    context pass(both.features);
    const auto x = at::ones({3, width_of_cut}).requires_grad_();
    pass.backward({ask("loss", 1, {x, people}).tensor(0)}).get();
    ask("learn", 1);
    BOOST_TEST(learned(1));
    BOOST_TEST(!learned(2));
    after = loss_now();
    BOOST_TEST(after < before);
    ask("learn", 1);
    BOOST_TEST(loss_now() == after);
  }
  BOOST_CHECK_EXCEPTION(ask("learn", 2), error,
                        [](const error& e) { return contains(e.what(), "in the context of its backward pass"); });
  BOOST_CHECK_EXCEPTION(ask("weights", 2), error, [](const error& e) { return contains(e.what(), "got 'weights'"); });
}

BOOST_AUTO_TEST_CASE(the_label_side_takes_rows_of_the_cut_and_people_that_it_knows) {
  const data all;
  parties both(all, short_training(), {});
  const auto refusal = [&](std::vector<at::Tensor> tensors) {
    try {
      both.features.peer("labels")
        .call(label_side::name, std::move(tensors), {{"do", std::string("loss")}, {"step", std::int64_t{1}}})
        .get();
    } catch (const error& e) {
      return std::string(e.what());
    }
    return std::string("taken");
  };
  const auto rows = at::ones({2, width_of_cut});
  const auto people = at::tensor(std::vector<std::int64_t>{1, 2});
  BOOST_TEST(refusal({rows, people}) == "taken");
  BOOST_TEST(contains(refusal({rows, at::tensor(std::vector<std::int64_t>{1, 100'000})}), "no label of person 100000"));
  BOOST_TEST(contains(refusal({rows, at::tensor(std::vector<std::int64_t>{2, 2})}), "person 2 is named twice"));
  for (const auto& bad : {std::vector<at::Tensor>{rows.narrow(1, 0, 3), people},
                          {rows, people.narrow(0, 0, 1)},
                          {rows.to(at::kDouble), people},
                          {rows, people.to(at::kFloat)},
                          {rows.narrow(0, 0, 0), people.narrow(0, 0, 0)}})
    BOOST_TEST(contains(refusal(bad), "expected activations [rows, 8] float and people [rows] long, got"));
}

BOOST_AUTO_TEST_CASE(what_crosses_the_cut_is_clipped_and_noised) {
  auto rows = (at::arange(12, at::kFloat).view({3, 4}) + 1).requires_grad_();
  cut clips({5.0, 0}, 1);
  const auto norms = clips.shielded(rows).norm(2, 1);
  for (int row = 0; row < 3; ++row) BOOST_TEST(norms[row].item<float>() <= 5.0001F);
  BOOST_TEST(clips.shielded(at::ones({1, 4})).equal(at::ones({1, 4})));  // a short row stays as it is
  // Gradients are clipped on their way back, and nothing changes on the way forth.
  const auto same = clips.with_shielded_gradient(rows);
  BOOST_TEST(same.equal(rows));
  (same * 100).sum().backward();
  BOOST_TEST(std::abs(rows.grad()[0].norm().item<float>() - 5) < 1e-4);
  // Noise has the deviation that was asked for, and two runs with one seed add the same.
  cut noises({2.0, 0.5}, 3);
  cut again({2.0, 0.5}, 3);
  const auto zero = at::zeros({2000, 8});
  const auto noise = noises.shielded(zero);
  BOOST_TEST(std::abs(noise.std().item<float>() - 1.0F) < 0.03F);
  BOOST_TEST(noise.equal(again.shielded(zero)));
  BOOST_TEST(!noise.equal(noises.shielded(zero)));
  cut nothing({}, 1);
  BOOST_TEST(nothing.shielded(rows).equal(rows));
}

BOOST_AUTO_TEST_CASE(noise_needs_a_clip) {
  BOOST_CHECK_EXCEPTION(cut({0, 1}, 1), troupe::error,
                        [](const auto& refused) { return refused.code() == troupe::errc::misuse; });
}

// Of many gradients of the same rows, each with a noise of its own, the mean or the difference would tell what the noise hides.
BOOST_AUTO_TEST_CASE(a_noised_gradient_is_given_once) {
  for (const double noise : {0.0, 1.0}) {
    cut shield({1, noise}, 1);
    const auto rows = at::rand({3, 2}).requires_grad_();
    const auto loss = shield.with_shielded_gradient(rows).square().sum();
    const auto backward = [&](bool keep) { loss.backward({}, keep); };
    backward(true);
    const auto first = rows.grad().clone();
    if (noise == 0)
      backward(false);
    else
      BOOST_CHECK_EXCEPTION(backward(false), std::exception,
                            [](const std::exception& why) { return contains(why.what(), "is given once for each call"); });
    BOOST_TEST(at::equal(rows.grad(), noise == 0 ? first * 2 : first));
  }
}

BOOST_AUTO_TEST_CASE(a_table_with_a_mistake_is_refused_with_its_line) {
  BOOST_TEST(problem_of_table("person,x\n1,2\n") == "none");
  BOOST_TEST(problem_of_table("person\n1\n") == ":1: expected a line of names, as in 'person,x1,x2', got 'person'");
  BOOST_TEST(problem_of_table("person,x\n1,2\n2\n") == ":3: expected 2 fields, got 1");
  BOOST_TEST(problem_of_table("person,x\n1,two\n") == ":2: expected a number, got 'two'");
  BOOST_TEST(problem_of_table("person,x\n1,2\n1,3\n") == ":3: person 1 has a line already");
  for (const auto* number : {"nan", "inf", "1e99"})
    BOOST_TEST(problem_of_table("person,x\n1," + std::string(number) + "\n") ==
               ":2: expected a number, got '" + std::string(number) + "'");
  BOOST_TEST(problem_of_table("person,label\n1,0\n2,1\n", read_labels) == "none");
  BOOST_TEST(problem_of_table("person,label\n1,0\n2,0.5\n", read_labels) == ":3: expected the label 0 or 1, got 0.5");
  BOOST_TEST(problem_of_table("person,x1,x2\n1,0,1\n", read_labels) == ":1: expected two columns, as in 'person,label', got 3");
  BOOST_TEST(problem_of_table("person,x\n") == ": expected a line for each person, got none");
  BOOST_CHECK_EXCEPTION(read_table("/dev/zero"), std::runtime_error, [](const std::runtime_error& problem) {
    return std::string(problem.what()) == "/dev/zero:1: expected a line of at most 1 MiB";
  });
  BOOST_CHECK_EXCEPTION(read_table("/"), std::runtime_error,
                        [](const auto& e) { return contains(e.what(), "/:1: can't be read: Is a directory"); });
  BOOST_CHECK_EXCEPTION(read_table("nowhere.csv"), std::runtime_error,
                        [](const auto& e) { return contains(e.what(), "nowhere.csv: no such file"); });
}

BOOST_AUTO_TEST_CASE(an_example_overwrites_no_table) {
  const test::temporary_folder folder;
  const std::string file = folder / std::string("labels.csv");
  std::ofstream(file) << "mine";
  BOOST_CHECK_EXCEPTION(write_example(std::filesystem::path(file).parent_path(), 10, 1), std::runtime_error,
                        [](const auto& e) { return contains(e.what(), "labels.csv: is there already"); });
  std::ifstream in(file);
  BOOST_TEST(std::string(std::istreambuf_iterator<char>(in), {}) == "mine");
}

BOOST_AUTO_TEST_CASE(every_row_is_in_one_batch_of_an_epoch) {
  const auto batches = batches_of(130, 1, {});
  BOOST_TEST(batches.size() == 3U);
  BOOST_TEST(std::get<0>(at::cat(batches).sort()).equal(at::arange(130)));
  BOOST_TEST(!at::cat(batches_of(130, 2, {})).equal(at::cat(batches)));
}

BOOST_AUTO_TEST_SUITE_END()
