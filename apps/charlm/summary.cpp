// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/summary.hpp"

#include <sstream>

#include <nlohmann/json.hpp>

#include <troupe/actors/support/texts.hpp>

#include "apps/charlm/figures.hpp"

namespace troupe::apps::charlm {

namespace {

std::string percent(double share) { return fixed(100 * share, 1) + " %"; }

std::string threads_text(int threads) { return std::to_string(threads) + (threads == 1 ? " thread" : " threads"); }

}  // namespace

std::string run_summary::to_json(const run_state& of) const {
  const nlohmann::ordered_json model{{"vocabulary", of.shape.vocabulary},
                                     {"blocks", of.shape.blocks},
                                     {"width", of.shape.width},
                                     {"heads", of.shape.heads},
                                     {"context", of.shape.context}};
  const auto by_formula = bubble_by_formula(of.how.order, of.stages, of.how.micro_batches, work);
  const nlohmann::ordered_json all{
    {"validation_loss", validation_loss},
    {"trigram_loss", trigram_loss},
    {"tokens_per_second", tokens_per_second > 0 ? nlohmann::ordered_json(tokens_per_second) : nlohmann::ordered_json()},
    {"single_process_tokens_per_second", single_process.tokens_per_second},
    {"single_process_threads", single_process.threads},
    {"gradients_verified", verified_steps > 0},
    {"verified_steps", verified_steps},
    {"verified_parameters", verified_parameters},
    {"seconds", seconds},
    {"training_seconds", of.seconds},
    {"steps", of.step},
    {"stages", of.stages},
    {"nodes", of.nodes},
    {"model", model},
    {"batch", of.how.batch},
    {"micro_batches", of.how.micro_batches},
    {"schedule", std::string(to_text(of.how.order))},
    {"bubble", work.span > 0 ? nlohmann::ordered_json(work.bubble()) : nlohmann::ordered_json()},
    {"bubble_by_formula", work.span > 0 ? nlohmann::ordered_json(by_formula) : nlohmann::ordered_json()},
    {"most_micro_batches_held", work.span > 0 ? nlohmann::ordered_json(most_held) : nlohmann::ordered_json()},
    {"wire", std::string(to_text(of.how.wire))},
    {"seed", of.how.seed},
    {"text", of.text_origin},
    {"text_fingerprint", of.text_fingerprint},
  };
  return all.dump(2) + "\n";
}

std::vector<std::string> run_summary::lines(const run_state& of, const std::string& sample, const paths_of_run& paths) const {
  std::vector<std::string> out{"", "a sample:"};
  std::istringstream text(sample);
  for (std::string line; std::getline(text, line);) out.push_back("  | " + line);
  out.push_back("");
  out.push_back("validation loss  " + fixed(validation_loss, 3) + " nats per character after " + std::to_string(of.step) +
                " steps; a trigram model of the same text has " + fixed(trigram_loss, 3));
  const bool measured = tokens_per_second > 0;
  auto speed = "throughput       " +
               (measured ? grouped(tokens_per_second) + " tokens/s with " + std::to_string(of.stages + 1) + " processes"
                         : "not measured, because verified steps do not count and no other step ran");
  if (single_process.tokens_per_second > 0)
    speed += "; " + grouped(single_process.tokens_per_second) + " with one, libtorch's own engine and " +
             threads_text(single_process.threads) +
             (measured ? " (ratio " + fixed(tokens_per_second / single_process.tokens_per_second, 2) + ")" : "");
  out.push_back(speed);
  if (work.span > 0)
    out.push_back("bubble           stages did not work for " + percent(work.bubble()) + " of a step; by the formula of " +
                  std::string(to_text(of.how.order)) + " " +
                  percent(bubble_by_formula(of.how.order, of.stages, of.how.micro_batches, work)));
  out.push_back(verified_steps > 0 ? "gradients        verified bit for bit in " + std::to_string(verified_steps) +
                                       (verified_steps == 1 ? " step" : " steps")
                                   : "gradients        not verified");
  if (of.how.wire != wire_format::exact)
    out.push_back("wire             " + std::string(to_text(of.how.wire)) + ", except in verified steps");
  out.push_back("time             " + clock_text(seconds) + " in all, " + clock_text(of.seconds) + " of training");
  out.push_back("files            " + paths.folder + "/: " + support::joined(paths.files));
  out.push_back("more text        " + paths.generate);
  return out;
}

}  // namespace troupe::apps::charlm
