#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs the example: run.sh FOLDER TROUPE. FOLDER has the two programs and the library, TROUPE is the program troupe. The driver
# trains twice: with the program of the stage, and with `troupe node --load`.
set -eu
folder=$1
troupe=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkfifo "$work/line"

train_with() {
  "$@" --name stage --until-left driver --log-level warn >"$work/line" &
  stage=$!
  read -r line <"$work/line" || { wait $stage; exit 1; } # "stage listens on 127.0.0.1:40123"
  "$folder/example_two_programs_driver" --name driver --join "${line##* }" || { kill $stage; exit 1; }
  wait $stage
}

echo "a stage that is a program of its own:"
train_with "$folder/example_two_programs_stage"
echo "a node that has loaded the same modules:"
train_with "$troupe" node --load "$folder/libexample_modules.so"
