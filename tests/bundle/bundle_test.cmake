# SPDX-License-Identifier: BSD-3-Clause
# Run by ctest with COMMAND (which makes an archive, and takes the path of the archive), NAME, TORCH, BUILD, SOURCE, KERNELS and SCRATCH.
cmake_minimum_required(VERSION 3.25)
string(RANDOM LENGTH 8 random)
set(elsewhere "/tmp/troupe_bundle_test_${random}") # outside of the source and build folders
set(root "${elsewhere}/unpacked here/${NAME}")

function(finish)
  file(REMOVE_RECURSE "${elsewhere}" "${SCRATCH}")
endfunction()

function(fail text)
  finish()
  message(FATAL_ERROR "${text}")
endfunction()

function(run expected_status what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output WORKING_DIRECTORY "${elsewhere}")
  if(NOT status EQUAL expected_status)
    fail("${what}: status ${status}, expected ${expected_status}:\n${output}")
  endif()
  message(STATUS "${what}: done")
  set(output "${output}" PARENT_SCOPE)
endfunction()

function(expect what)
  if(NOT output MATCHES "${what}")
    fail("expected '${what}' in:\n${output}")
  endif()
endfunction()

# Sets `wrong` to the libraries that a program of the bundle would not take from the bundle, from libtorch or from the base of the system.
function(look file)
  execute_process(COMMAND ${bare} "${root}/libexec/with_libtorch" ldd "${file}" OUTPUT_VARIABLE lines COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" lines "${lines}")
  set(wrong)
  foreach(line IN LISTS lines)
    if(line MATCHES "libcudart" AND file MATCHES "libtroupe_cuda")
      continue() # the kernels are loaded after libtorch, which has loaded the CUDA runtime by then
    elseif(line MATCHES "^\tlib(cu|nv|nccl)" AND file MATCHES "libtorchtroupe")
      continue() # of Python's part of libtorch
    elseif(line MATCHES "=> not found")
      list(APPEND wrong "${line}")
    elseif(line MATCHES "^\t([^ ]+) => ([^ ]*.*) [(]0x")
      set(library "${CMAKE_MATCH_1}")
      cmake_path(SET path NORMALIZE "${CMAKE_MATCH_2}")
      cmake_path(IS_PREFIX root "${path}" of_bundle)
      if(NOT of_bundle AND NOT path MATCHES "^${torch_folder}/(torch|nvidia)/" AND NOT library MATCHES
          "^(libc|libm|libdl|librt|libpthread|libutil|libresolv|libgcc_s|libstdc[+][+])[.]so")
        list(APPEND wrong "${line}")
      endif()
    endif()
  endforeach()
  set(wrong "${wrong}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE "${SCRATCH}")
file(MAKE_DIRECTORY "${SCRATCH}" "${root}")
get_filename_component(torch "${TORCH}" REALPATH)
get_filename_component(torch_folder "${torch}" DIRECTORY)
# A fast compression: its bytes are about those of the archive of `make bundle`.
run(0 "make the archive" ${CMAKE_COMMAND} -E env XZ_LEVEL=-1 ${COMMAND} "${SCRATCH}/bundle.tar.xz")
run(0 "unpack" tar -C "${elsewhere}/unpacked here" -xf "${SCRATCH}/bundle.tar.xz")

# Without a variable of the build machine.
set(clean env -i PATH=/usr/bin:/bin HOME=${elsewhere})
set(bare ${clean} "TROUPE_TORCH_DIR=${torch}")

# Every program and library finds what it needs, and no run path leads out of the bundle.
file(GLOB files "${root}/lib/*" "${root}/libexec/*" "${root}/tests/*")
set(looked 0)
foreach(file IN LISTS files)
  file(READ "${file}" magic LIMIT 4 HEX)
  if(NOT magic STREQUAL 7f454c46)
    continue()
  endif()
  math(EXPR looked "${looked} + 1")
  look("${file}")
  if(wrong)
    fail("${file} takes from outside of the bundle:\n${wrong}")
  endif()
  run(0 "run path of ${file}" readelf -d "${file}")
  if(output MATCHES "R(UN)?PATH[^[]*.([^]]*)." AND NOT CMAKE_MATCH_2 MATCHES "^[$]ORIGIN(/../lib)?$")
    fail("${file} has the run path '${CMAKE_MATCH_2}', expected one within the bundle")
  endif()
endforeach()
if(looked LESS 30)
  fail("expected more than 30 programs and libraries in the bundle, but there are ${looked}: ${files}")
endif()
# The look finds a library that is missing: then the system's would be taken, or none.
file(GLOB caf "${root}/lib/libcaf_core*")
file(RENAME "${caf}" "${elsewhere}/taken_away")
look("${root}/libexec/troupe")
if(NOT wrong MATCHES "libcaf_core")
  fail("expected that a look finds libcaf_core missing, but it finds '${wrong}'")
endif()
file(RENAME "${elsewhere}/taken_away" "${caf}")

# The main job, also by a link to the program.
run(0 "troupe --version" ${bare} "${root}/bin/troupe" --version)
file(CREATE_LINK "${root}/bin/troupe" "${elsewhere}/link" SYMBOLIC)
run(0 "by a link" ${bare} "${elsewhere}/link" train --help)
foreach(line RANGE 600)
  file(APPEND "${elsewhere}/text.txt" "line ${line} of a text that repeats itself\n")
endforeach()
run(0 "troupe train" ${bare} "${root}/bin/troupe" train --data "${elsewhere}/text.txt" --out "${elsewhere}/run" --steps 2 --blocks 2
  --width 16 --heads 2 --context 16 --batch 8 --micro-batches 4 --single-process-seconds 0 --sample 20)
expect("gradients +verified bit for bit in 2 steps")
expect("more text +[^\n]*generate[^\n]*")
# The command that it prints for more text starts as it is.
string(REGEX REPLACE ".*more text +([^\n]*generate[^\n]*).*" "\\1" command "${output}")
run(0 "${command}" ${bare} sh -c "${command}")

# Tests, without the sources and the build folder.
find_program(ctest ctest REQUIRED)
execute_process(COMMAND ${bare} ${ctest} --output-on-failure -R "^(engine_models|devices_staging|devices_two_nodes)_test$" --no-tests=error
  WORKING_DIRECTORY "${root}" RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT status EQUAL 0)
  fail("ctest in the bundle: status ${status}\n${output}")
endif()
expect("100% tests passed, 0 tests failed out of 3")

# The check of a GPU: on the CPU it does all it can, and where there is no GPU it says so.
set(check "${root}/gpu/check.sh" --device cpu --quick)
run(0 "gpu/check.sh --device cpu" ${bare} ${check})
expect("22 comparisons with the same bits, 0 that differ or failed; [0-9]+ figures reach their bars, [0-9]+ are short; [0-9]+ skipped")
expect("processes: tensors of many sizes, there and back . same bits ")
expect(". main job: two stages on cpu . same bits: verified[^|]* in 2 steps ")
expect(". main job: two stages on cpu, by one process . [0-9,]+ tokens/s[^|]* . [0-9]+[.][0-9]+[^|]* . 0.60 ")
foreach(what IN ITEMS "Python program on the drop-in engine" "gpu/rpc.py" "gpu/real_models.py")
  expect(". ${what} . skipped: [^|]* has no package torch ")
endforeach()
expect("memcheck . skipped: cpu is no GPU ")
# Its parts.
run(0 "gpu/check.sh --help" ${bare} "${root}/gpu/check.sh" --help)
foreach(part IN ITEMS bits figures rpc job drop_in models sanitizer)
  expect("\n  ${part} +[0-9]+ +[0-9]+  [a-z]")
endforeach()
run(2 "no part of gpu/check.sh" ${bare} ${check} jobs)
expect("expected a part .bits figures rpc job drop_in models sanitizer., got 'jobs'")
run(0 "two parts" ${bare} ${check} sanitizer job)
expect("synccheck . skipped: cpu is no GPU [^\n]*\n. main job: two stages on cpu . same bits: [^\n]*\n[^\n]*\n\n1 comparisons with the same bits")
# A stand-in for Python prints what PRINTS says, and with the drop-in engine what PRINTS_ON_TROUPE says.
file(WRITE "${elsewhere}/python" [=[#!/bin/sh
case $* in
  -c*) echo "$TORCH_VERSION"; exit ;;
  *rpc.py*) echo '| first | 1 GB/s | 1.30 | 1.20 |'; sleep "${SLEEPS:-0}"; echo '| second | 1 GB/s | 1.10, **short** | 1.20 |'; exit ;;
  *real_models.py*) [ -e "$PYTHONPATH/torchtroupe/rpc.py" ] && [ -e "$TORCHTROUPE_LIBRARY" ] && echo '| a model | same bits |  |  |'; exit ;;
esac
[ -z "${LD_PRELOAD:-}" ] || { PRINTS=$PRINTS_ON_TROUPE; echo "troupe: $REPORTS" >&2; }
case $* in *--times) echo 'a_loop 0.000004' ;; *) echo "$PRINTS" ;; esac
]=])
file(CHMOD "${elsewhere}/python" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
set(with_python ${bare} "TROUPE_PYTHON=${elsewhere}/python" TORCH_VERSION=${TORCH_VERSION}+cpu PRINTS=same)
list(APPEND check drop_in models rpc)
run(0 "gpu/check.sh with Python" ${with_python} PRINTS_ON_TROUPE=same "REPORTS=7 backward passes, and 0 left to PyTorch's engine" ${check})
expect("drop-in engine: 1 parts; 7 backward passes, and 0 left to PyTorch's engine . same bits ")
expect("a_loop . PyTorch 4 µs, troupe 4 µs . 1.00 ")
expect("\n2 comparisons with the same bits, 0 that differ or failed; 1 figures reach their bars, 1 are short; 0 skipped")
run(1 "gpu/check.sh where the bits differ" ${with_python} PRINTS_ON_TROUPE=other "REPORTS=7 backward passes, and 0 left to PyTorch's engine" ${check})
expect("drop-in engine . [*][*]failed[*][*]: > other ")
run(1 "gpu/check.sh where libtorch runs a pass" ${with_python} PRINTS_ON_TROUPE=same "REPORTS=6 backward passes, and 1 left to PyTorch's engine" ${check})
expect("drop-in engine . [*][*]failed[*][*]: 6 backward passes, and 1 left to PyTorch's engine ")
run(1 "gpu/check.sh out of time" ${with_python} SLEEPS=60 "${root}/gpu/check.sh" --device cpu --seconds 3 rpc models)
expect("\n. first . 1 GB/s . 1.30 . 1.20 .\n. gpu/rpc.py . [*][*]failed[*][*]: out of time .  .  .\n. models . skipped: no time is left ")
run(2 "gpu/check.sh without a GPU" ${bare} "${root}/gpu/check.sh" --device cuda:99)
expect("expected a device of this process .cpu[^)]*., but it is 'cuda:99'.*check.sh: 'cuda:99' can't be checked here")

# libtorch is not there, or is another one: one line that says what to set.
run(2 "no libtorch" ${clean} TROUPE_PYTHON=/bin/false "${root}/bin/troupe" --version)
expect("^troupe: expected libtorch [0-9.]+, but TROUPE_TORCH_DIR is not set and /bin/false has no package torch; set TROUPE_TORCH_DIR to [^\n]*\n$")
run(2 "a wrong folder" ${clean} TROUPE_TORCH_DIR=/nowhere "${root}/bin/troupe" --version)
expect("^troupe: expected lib/libtorch_cpu.so in '/nowhere' .TROUPE_TORCH_DIR., but it is not there; set TROUPE_TORCH_DIR to [^\n]*\n$")
file(WRITE "${elsewhere}/other/torch/lib/libtorch_cpu.so" "")
file(WRITE "${elsewhere}/other/torch/version.py" "__version__ = '2.10.0+cu128'\n")
run(2 "another version" ${clean} TROUPE_TORCH_DIR=${elsewhere}/other/torch "${root}/bin/troupe" --version)
expect("^troupe: expected libtorch [0-9.]+ in '[^']*/other/torch' .TROUPE_TORCH_DIR., but it is 2.10.0; set TROUPE_TORCH_DIR to [^\n]*\n$")
# A libtorch without Python's file, and that of a Python.
file(WRITE "${elsewhere}/header/lib/libtorch_cpu.so" "")
file(WRITE "${elsewhere}/header/include/torch/headeronly/version.h"
  "#define TORCH_VERSION_MAJOR 2\n#define TORCH_VERSION_MINOR 9\n#define TORCH_VERSION_PATCH 0\n")
run(2 "another version by its header" ${clean} TROUPE_TORCH_DIR=${elsewhere}/header "${root}/bin/troupe" --version)
expect("but it is 2.9; set")
run(0 "Python's libtorch" ${clean} PYTHONPATH=${torch_folder} "${root}/bin/troupe" --version)
finish()
