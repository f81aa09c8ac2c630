// SPDX-License-Identifier: BSD-3-Clause
/// Reinforcement learning with one agent and two observers. Each observer runs a world of its own and calls the agent back for
/// every move. The agent's computations in these calls belong to the context in which the agent asked for the episode. So one
/// backward pass goes through all moves of all observers.
#include <cstdio>
#include <exception>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include <torch/torch.h>

#include <troupe/troupe.hpp>

namespace {

constexpr std::int64_t cells = 6;  // cells of a corridor; the reward is at the right end
constexpr std::int64_t most_moves = 20;

troupe::settings named(const std::string& name) {
  troupe::settings options;
  options.name = name;
  return options;
}

/// Runs an episode on an observer: asks the agent for each move through the observer's corridor. Returns how many moves there
/// were.
troupe::call_reply run_episode(troupe::call_arguments& arguments) {
  const auto agent = arguments.here.peer("agent");
  std::int64_t cell = 0;
  std::int64_t moves = 0;
  while (cell < cells - 1 && moves < most_moves) {
    const auto answer = agent.call("act", {}, {{"cell", cell}, {"observer", arguments.here.name()}}).get();
    cell = std::max<std::int64_t>(0, cell + troupe::get<std::int64_t>(answer.values, "move"));
    ++moves;
  }
  return {{}, {{"moves", moves}}};
}

/// Stores the policy and, for each observer, the log probabilities of the moves that the policy chose in this episode.
class agent {
 public:
  agent() : logits_(torch::zeros({cells, 2}).requires_grad_()) {}

  troupe::call_reply act(troupe::call_arguments& arguments) {
    const auto cell = troupe::get<std::int64_t>(arguments.values, "cell");
    const auto chances = torch::log_softmax(logits_[cell], 0);
    std::lock_guard lock(mutex_);
    const auto move = torch::multinomial(chances.exp(), 1).item<std::int64_t>();
    chosen_[troupe::get<std::string>(arguments.values, "observer")].push_back(chances[move]);
    return {{}, {{"move", move * 2 - 1}}};
  }

  /// Runs one episode on all observers at once, and makes a step of the policy. Returns the mean number of moves.
  double learn(troupe::node& here, const std::vector<std::string>& observers) {
    chosen_.clear();
    troupe::context pass{here};
    std::map<std::string, troupe::future<troupe::call_reply>> episodes;
    for (const auto& name : observers) episodes.emplace(name, here.peer(name).call("run_episode"));
    std::vector<torch::Tensor> terms;
    double moves = 0;
    for (const auto& [name, episode] : episodes) {
      const auto taken = static_cast<double>(troupe::get<std::int64_t>(episode.get().values, "moves"));
      const std::lock_guard lock(mutex_);  // the other observer may still run
      for (const auto& each : chosen_[name]) terms.push_back(each * ((taken - usual_) / most_moves));
      moves += taken / static_cast<double>(observers.size());
    }
    usual_ += 0.2 * (moves - usual_);
    pass.backward({torch::stack(terms).sum()}).get();
    torch::NoGradGuard no_grad;
    logits_.sub_(pass.gradient(logits_));
    return moves;
  }

 private:
  std::mutex mutex_;  // guards chosen_ while episodes run
  torch::Tensor logits_;
  double usual_ = most_moves;
  std::map<std::string, std::vector<torch::Tensor>> chosen_;
};

void run() {
  torch::manual_seed(5);
  troupe::node here{named("agent")};
  agent learner;
  here.functions().add("act", [&](troupe::call_arguments& arguments) { return learner.act(arguments); });
  const std::vector<std::string> observers{"left", "right"};
  std::vector<std::unique_ptr<troupe::node>> worlds;
  for (const auto& name : observers) {
    worlds.push_back(std::make_unique<troupe::node>(named(name)));
    worlds.back()->functions().add("run_episode", run_episode);
    worlds.back()->join("127.0.0.1", here.port());
  }

  double first = 0;
  double last = 0;
  constexpr int episodes = 120;
  for (int i = 0; i < episodes; ++i) {
    const auto moves = learner.learn(here, observers);
    if (i < 10) first += moves / 10;
    if (i >= episodes - 10) last += moves / 10;
  }
  std::printf("%.1f moves to the reward in the first 10 episodes, %.1f in the last; %lld is the least\n", first, last,
              static_cast<long long>(cells - 1));
  if (!(last < first * 0.7)) throw std::runtime_error("expected the agent to learn the way");
}

}  // namespace

int main() try { run(); } catch (const std::exception& failure) {
  std::fprintf(stderr, "observers: %s\n", failure.what());
  return 1;
}
