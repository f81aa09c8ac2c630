// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "apps/charlm/train_options.hpp"

namespace troupe::apps::charlm {

/// Commands that a person can copy into a shell. They begin with the program as the person started it.
///   AD-1  the text is quoted. A shell that runs it gets exactly the words of the command, whatever characters they have.

/// The command that continues a run: "build/release/apps/troupe train --resume --out out/charlm"
std::string continue_command(const train_options& options);

/// The command that generates text from a run: "build/release/apps/troupe generate --out out/charlm"
std::string generate_command(const train_options& options);

}  // namespace troupe::apps::charlm
