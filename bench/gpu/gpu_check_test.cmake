# SPDX-License-Identifier: BSD-3-Clause
# Runs PROGRAM (gpu_check) on the CPU: every comparison finds the same bits, and with --break every comparison finds a difference.
cmake_minimum_required(VERSION 3.25)

function(run expected_status)
  execute_process(COMMAND "${PROGRAM}" ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL expected_status)
    message(FATAL_ERROR "gpu_check ${ARGN}: status ${status}, expected ${expected_status}:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

include("${CMAKE_CURRENT_LIST_DIR}/../../tests/support/expect.cmake")

run(0 --device cpu --quick)
expect("21 comparisons with the same bits, 0 that differ")
expect("skipped: the CPU has no streams")
foreach(row IN ITEMS "gradients of `lstm_64`" "gradients of random programs .10 of 10." "kernel: pack" "kernel: unpack"
    "kernel: float32 to bfloat16" "kernel: decode" "nodes: gradients of passes[^|]*"
    "processes: tensors of many sizes, there and back" "processes: gradients of passes with steps in two processes .5."
    "processes: tensors that travel as[^|]*")
  expect("\n. ${row} . same bits ")
endforeach()
foreach(row IN ITEMS "launch-bound backward: 1,000 products" "large backward" "packing 1,000 gradients" "share of a copy")
  expect("\n. ${row}[^|]*.[^|]*[0-9] [^|]*. [0-9]+.[0-9][0-9][^|]*. [0-9]+.[0-9][0-9] ")
endforeach()
foreach(which IN ITEMS nodes processes)
  expect("${which}: a call with 256 KiB, there and back . CPU [0-9.]+ GB/s, device [0-9.]+ GB/s . [0-9]+.[0-9][0-9] .  .")
endforeach()
expect("processes: how they are connected . shared memory ")
expect("adds to a call, µs . with one of the CPU [0-9.]+ µs, of the device [0-9.]+ µs . -?[0-9]+[.][0-9][0-9][^|]*. ≤60.00 ")
expect("travel as int8, there and back . of the CPU [0-9.]+ ms, of the device [0-9.]+ ms . [0-9]+[.][0-9][0-9][^|]*. ≤0.20 ")

run(1 --device cpu --quick --only gradients kernels nodes processes --break)
expect("\n0 comparisons with the same bits, 21 that differ")

# A device that is not there. (A machine with 100 GPUs would fail here.)
run(2 --device cuda:99)
expect("expected a device of this process .cpu[^)]*., but it is 'cuda:99'")
