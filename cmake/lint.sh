#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Checks the format of every source file and the spelling of every text. With an argument, also runs clang-tidy:
#   lint.sh 1      on the sources that differ from the branch main
#   lint.sh last   on the 12 sources and headers that were changed last, for a clone that is at main
# `lint.sh format` puts every source file into the format, and checks nothing.
# A header is checked in the first source that includes it.
# Tests are left out: clang-tidy would warn of tests that set the environment or copy arguments, which does no harm
# there.
# clang-tidy uses a build folder without precompiled headers, because clang-tidy can't read GCC's precompiled headers.
set -eu
cd "$(dirname "$0")/.."
which=${1:-}
PATH=$PWD/.venv/bin:$PATH
for tool in clang-format codespell ${which:+clang-tidy}; do
  command -v "$tool" >/dev/null || {
    echo "lint: $tool is missing; run: sudo apt-get install -y $tool" >&2
    exit 1
  }
done
case $(clang-format --version) in
  *'version 14.'*) ;;
  *)
    echo "lint: expected clang-format 14, as in Debian 12, because other versions break lines elsewhere; got $(clang-format --version)." \
      "Run: .venv/bin/python -m pip install clang-format==14.0.6" >&2
    exit 1
    ;;
esac

git rev-parse --git-dir >/dev/null  # outside of a repository there would be nothing to check, and no error
present() { while read -r file; do [ ! -e "$file" ] || echo "$file"; done; }

format="--dry-run -Werror"
[ "$which" != format ] || format=-i
git ls-files -co --exclude-standard -- '*.hpp' '*.cpp' '*.cu' | present | xargs -r clang-format $format
[ "$which" != format ] || exit 0

# Words that codespell does not know: names, a format of sparse tensors, and words that tests misspell on purpose.
words=mattern,coo,wieght,trian,caf,tru
git ls-files -co --exclude-standard -- '*.md' '*.hpp' '*.cpp' '*.cu' '*.proto' '*.py' '*.sh' '*.cmake' '*CMakeLists.txt' Makefile |
  present | xargs -r codespell --ignore-words-list="$words" || {
  echo "lint: a word above is misspelt; mend it, or add it to the words in cmake/lint.sh if it is right" >&2
  exit 1
}

case $which in
  '') exit 0 ;;
  last) changed=$(git log --format= --name-only -- '*.cpp' '*.hpp' ':!tests' | awk '!seen[$0]++' | present | head -n 12) ;;
  *)
    git rev-parse --verify --quiet main >/dev/null || {
      echo "lint: expected a branch main to compare with, but there is none; use TIDY=last" >&2
      exit 1
    }
    changed=$({ git diff --name-only main -- '*.cpp' '*.hpp' ':!tests'; git ls-files -o --exclude-standard -- '*.cpp' '*.hpp' ':!tests'; } | sort -u | present) ;;
esac
cmake --preset release -B build/lint -DTROUPE_PCH=OFF -DTROUPE_UNITY=OFF -DTROUPE_CCACHE=OFF >/dev/null
cmake --build build/lint --target generated >/dev/null
# The sources in which the files on stdin are compiled.
sources_of() {
  while read -r file; do
    case $file in
      *.hpp) git grep -lF -e "<troupe/$file>" -e "\"$file\"" -- '*.cpp' ':!tests' | head -n 1 ;;
      *) echo "$file" ;;
    esac
  done | sort -u
}
echo "$changed" | sources_of | xargs -r -n 1 -P "$(nproc)" clang-tidy --quiet -p build/lint
