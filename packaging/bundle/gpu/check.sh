#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# check.sh [--device cuda:0] [--quick]: does what has to be done on a machine with a GPU, and prints a table in Markdown. Status 1: a
# comparison differs or a program fails. Figures below their bars do not count as failures.
set -eu
here=$(dirname "$(dirname "$(readlink -f "$0")")")
device=cuda:0 quick=
while [ $# -gt 0 ]; do
  case $1 in
    --device) device=${2:?check.sh: expected a device after --device, as in cuda:0}; shift 2 ;;
    --quick) quick=--quick; shift ;;
    *) echo "check.sh: expected --device DEVICE or --quick, got '$1'" >&2; exit 2 ;;
  esac
done

# Says which libtorch or which device is missing.
card=$("$here/bin/gpu_check" --device "$device" --card) || {
  echo "check.sh: '$device' can't be checked here; the line above says why" >&2
  exit 2
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# With this setting cuBLAS has the same bits on all streams. It takes more time, so figures are measured without it, as most programs run.
same_bits=CUBLAS_WORKSPACE_CONFIG=:4096:8
unset CUBLAS_WORKSPACE_CONFIG
status=0
say() { echo "check.sh: $*" >&2; }
row() { echo "| $1 | $2 |  |  |" >>"$work/rows"; }
failed() {
  status=1
  row "$1" "**failed**: $(tail -n 1 "$2" | tr '|' '/')"
  cat "$2" >&2
}

say "comparing on $card"
env "$same_bits" "$here/bin/gpu_check" --device "$device" $quick --only gradients kernels nodes >"$work/table" || status=1
grep -q '^|' "$work/table" || failed 'gpu_check' "$work/table"
say "measuring on $card"
"$here/bin/gpu_check" --device "$device" $quick --only figures node_figures >"$work/figures" || status=1
grep -q '^|' "$work/figures" || failed 'gpu_check' "$work/figures"

say "training with the stages on $device"
line=0
while [ $line -lt 1200 ]; do
  line=$((line + 1))
  echo "line $line of a text that repeats itself"
done >"$work/text.txt"
set -- --steps 100
[ -z "$quick" ] || set -- --steps 2 --blocks 2 --width 16 --heads 2 --context 16 --batch 8 --micro-batches 4 \
  --single-process-seconds 0 --sample 20
job="main job: two stages on $device"
if env "$same_bits" "$here/bin/troupe" train --device "$device" --data "$work/text.txt" --out "$work/run" "$@" >"$work/train" 2>&1; then
  row "$job" "$(sed -n 's/^.*\(verified.*\)$/\1/p' "$work/train" | head -n 1)"
  row "$job, throughput" "$(sed -n 's/^throughput *//p' "$work/train")"
else
  failed "$job" "$work/train"
fi

python=${TROUPE_PYTHON:-python3}
job="Python program on the drop-in engine"
if ! "$python" -c 'import torch' 2>"$work/python"; then
  row "$job" "skipped: $python has no package torch"
else
  say "$job"
  preload="$here/lib/libtroupe_preload.so"
  if env "$same_bits" "$python" "$here/gpu/drop_in.py" --device "$device" >"$work/plain" 2>"$work/errors" &&
    env "$same_bits" LD_PRELOAD="$preload" TROUPE_REPORT=1 "$python" "$here/gpu/drop_in.py" --device "$device" >"$work/ours" 2>"$work/report"; then
    passes=$(sed -n 's/^troupe: \([0-9]*\) backward passes.*/\1/p' "$work/report" | tail -n 1)
    cat "$work/ours" >&2
    if cmp -s "$work/plain" "$work/ours" && [ "${passes:-0}" -gt 0 ]; then
      row "$job: $(grep -cv ': not run: ' "$work/ours") of $(wc -l <"$work/ours") parts, $passes passes" 'same bits'
    else
      diff "$work/plain" "$work/ours" >"$work/difference" || true
      cat "$work/report" >&2
      [ -s "$work/difference" ] || echo 'no pass ran on it' >"$work/difference"
      failed "$job" "$work/difference"
    fi
    "$python" "$here/gpu/drop_in.py" --device "$device" --times >"$work/plain" 2>"$work/errors"
    LD_PRELOAD="$preload" "$python" "$here/gpu/drop_in.py" --device "$device" --times >"$work/ours" 2>"$work/errors"
    while read -r what seconds && read -r _ own <&3; do
      row "$job: backward of 'drop_in.py --times', $what" "$(awk "BEGIN { printf \"PyTorch %.0f µs, troupe %.0f µs, ratio %.2f\", $seconds * 1e6, $own * 1e6, $seconds / $own }")"
    done <"$work/plain" 3<"$work/ours"
  else
    cat "$work/report" >>"$work/errors" 2>/dev/null || true
    failed "$job" "$work/errors"
  fi
fi

for tool in memcheck racecheck initcheck synccheck; do
  what="kernels under compute-sanitizer's $tool"
  if [ "${device#cuda}" = "$device" ]; then
    row "$what" "skipped: $device is no GPU"
  elif ! command -v compute-sanitizer >/dev/null; then
    row "$what" 'skipped: compute-sanitizer is not in PATH'
  else
    say "$what"
    # Each tensor then has an allocation of its own, so an access beside it is found.
    if PYTORCH_NO_CUDA_MEMORY_CACHING=1 "$here/libexec/with_libtorch" compute-sanitizer --tool $tool --error-exitcode 9 "$here/libexec/gpu_check" \
      --device "$device" --quick --only kernels >"$work/sanitizer" 2>&1; then
      row "$what" "$(sed -n 's/^=* *\(ERROR SUMMARY.*\|RACECHECK SUMMARY.*\)$/\1/p' "$work/sanitizer" | tail -n 1)"
    else
      failed "$what" "$work/sanitizer"
    fi
  fi
done

grep -v '^|' "$work/table" | head -n 2
grep '^|' "$work/table" || echo '| what | result | ratio | bar |
| --- | --- | --- | --- |'
grep '^|' "$work/figures" | tail -n +3
cat "$work/rows"
grep -v '^|' "$work/table" | tail -n 1
grep -v '^|' "$work/figures" | tail -n 1
exit $status
