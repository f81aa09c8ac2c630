// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/metrics.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "apps/charlm/chart.hpp"
#include "apps/charlm/run_folder.hpp"

namespace troupe::apps::charlm {

metrics::metrics(std::string path, std::int64_t last_step) : path_(std::move(path)) {
  std::string kept;
  if (last_step >= 0) {
    std::ifstream in(path_);
    for (std::string line; std::getline(in, line);) {
      const auto fields = nlohmann::json::parse(line, nullptr, false);
      if (fields.is_discarded() || !fields.contains("step") || fields["step"] > last_step) continue;
      const auto step = fields["step"].get<double>();
      if (fields.contains("validation_loss"))
        validation_losses_.emplace_back(step, fields["validation_loss"].get<double>());
      else if (fields.contains("loss"))
        losses_.emplace_back(step, fields["loss"].get<double>());
      kept += line + "\n";
    }
  }
  write_whole_file(path_, kept);
  descriptor_ = support::owned_descriptor(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!descriptor_) throw std::runtime_error("expected to write to " + path_ + ", but: " + std::strerror(errno));
}

void metrics::add(const step_metrics& step) {
  losses_.emplace_back(static_cast<double>(step.step), step.loss);
  write(nlohmann::ordered_json{{"step", step.step},
                               {"loss", step.loss},
                               {"learning_rate", step.learning_rate},
                               {"gradient_norm", step.gradient_norm},
                               {"tokens_per_second", step.tokens_per_second},
                               {"seconds", step.seconds}}
          .dump());
}

void metrics::add_validation(std::int64_t step, double loss, double seconds) {
  validation_losses_.emplace_back(static_cast<double>(step), loss);
  write(nlohmann::ordered_json{{"step", step}, {"validation_loss", loss}, {"seconds", seconds}}.dump());
}

void metrics::write(const std::string& line) {
  const auto whole = line + "\n";
  struct stat before {};
  const auto known = ::fstat(descriptor_.get(), &before) == 0;
  std::size_t done = 0;
  while (done < whole.size()) {  // if the first call wrote less, the second call tells why
    const auto written = ::write(descriptor_.get(), whole.data() + done, whole.size() - done);
    if (written <= 0) break;
    done += static_cast<std::size_t>(written);
  }
  if (done == whole.size()) return;
  const std::string reason = std::strerror(errno);
  const auto restored = done == 0 || (known && ::ftruncate(descriptor_.get(), before.st_size) == 0);
  throw std::runtime_error("expected to write a line to " + path_ + ", but: " + reason +
                           (restored ? "; free some space" : "; its last line is not whole; free some space"));
}

std::string loss_chart(const metrics& of, double trigram_loss) {
  constexpr std::size_t most_points = 400;
  chart drawn;
  drawn.title = "Character-level language model: loss";
  drawn.x_label = "step";
  drawn.y_label = "loss (nats per character)";
  drawn.series.push_back({"training", "#7fb2e5", 1.6, false, thinned(of.losses(), most_points)});
  drawn.series.push_back({"validation", "#c2410c", 2.2, of.validation_losses().size() <= 60, of.validation_losses()});
  drawn.levels.push_back({"trigram model, validation", "#4b5563", trigram_loss});
  return drawn.to_svg();
}

}  // namespace troupe::apps::charlm
