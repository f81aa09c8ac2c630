// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "apps/charlm/train_options.hpp"

namespace troupe::apps::charlm {

/// Commands that a person can copy to a shell: with the program as it was started, and the options that they need.
///   AD-1  a shell that runs the text gets exactly these words, whatever characters are in them.

/// The word as a shell has to be given it: in quotes where it needs them.
std::string shell_word(const std::string& word);

/// "build/release/apps/troupe train --resume --out out/charlm"
std::string continue_command(const train_options& options);

/// "build/release/apps/troupe generate --out out/charlm"
std::string generate_command(const train_options& options);

}  // namespace troupe::apps::charlm
