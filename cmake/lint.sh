#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Checks the format of every source file. With an argument also runs clang-tidy on the sources
# that differ from the branch main, from a build folder without precompiled headers (GCC's are
# not Clang's).
set -eu
cd "$(dirname "$0")/.."
for tool in clang-format ${1:+clang-tidy}; do
  command -v "$tool" >/dev/null || {
    echo "lint: $tool is missing; run: sudo apt-get install -y $tool" >&2
    exit 1
  }
done

git ls-files -co --exclude-standard -- '*.hpp' '*.cpp' |
  while read -r file; do [ ! -e "$file" ] || echo "$file"; done |
  xargs -r clang-format --dry-run -Werror
[ -n "${1:-}" ] || exit 0

cmake --preset release -B build/lint -DTROUPE_PCH=OFF -DTROUPE_UNITY=OFF -DTROUPE_CCACHE=OFF >/dev/null
cmake --build build/lint --target generated >/dev/null
{ git diff --name-only --diff-filter=d main -- '*.cpp'; git ls-files -o --exclude-standard -- '*.cpp'; } |
  sort -u | xargs -r -n 1 -P "$(nproc)" clang-tidy --quiet -p build/lint
