#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs the fuzz targets one after the other, on all cores, and stops at the first fault. Inputs that reach new code stay in FOLDER/corpus.
#   run.sh PROGRAMS FOLDER SECONDS     SECONDS: for all targets together
set -eu
programs=$1
folder=$2
seconds=$3
root=$(cd "$(dirname "$0")/../.." && pwd)
targets="messages frames texts parts handshake node"
each=$((seconds / 6))
export LSAN_OPTIONS="suppressions=$root/cmake/lsan.supp:print_suppressions=0"
export ASAN_OPTIONS="detect_odr_violation=0:allocator_may_return_null=1"
export UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1"
export OMP_NUM_THREADS=1
mkdir -p "$folder/corpus" "$folder/faults"
"$programs/seeds" "$folder/seeds"
# With -detect_leaks=0 leaks are looked for once, when a program ends: to look after each input would take most of the time.
for target in $targets; do
  mkdir -p "$folder/corpus/$target" "$folder/seeds/$target"
  printf 'fuzz: %s for %s s\n' "$target" "$each"
  # CAF takes a hundred times the bytes of an input at most. A value that announces more than it has takes up to 4 GiB at once.
  most=3000
  if [ "$target" = frames ]; then most=64; fi
  if ! "$programs/${target}_fuzz" -max_total_time="$each" -max_len=20000 -timeout=25 -rss_limit_mb=3000 -malloc_limit_mb="$most" -print_final_stats=1 -detect_leaks=0 \
    -artifact_prefix="$folder/faults/$target-" "$folder/corpus/$target" "$folder/seeds/$target" >"$folder/$target.log" 2>&1; then
    tail -n 60 "$folder/$target.log" >&2
    printf 'fuzz: %s has found a fault: see above and %s; run it again with\n  %s/%s_fuzz %s/faults/%s-...\n' \
      "$target" "$folder/$target.log" "$programs" "$target" "$folder" "$target" >&2
    exit 1
  fi
  sed -n 's/^stat::number_of_executed_units: */fuzz:   inputs: /p' "$folder/$target.log"
done
echo "fuzz: no fault"
