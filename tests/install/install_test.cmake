# SPDX-License-Identifier: BSD-3-Clause
# Run by ctest with SOURCE, BUILD, SCRATCH, CONSUMER, GENERATOR, CXX, LIBDIR, SANITIZE, KERNELS and TORCH.
cmake_minimum_required(VERSION 3.25)
set(prefix "${SCRATCH}/prefix")
set(consumer "${SCRATCH}/consumer")
set(work "${SCRATCH}/work")
file(REMOVE_RECURSE "${prefix}" "${consumer}" "${work}")
set(flags -DCMAKE_BUILD_TYPE=Debug)
if(SANITIZE)
  list(APPEND flags -DCMAKE_CXX_FLAGS=-fsanitize=${SANITIZE})
endif()
# The path of libtorch must come from the installed package alone.
unset(ENV{TROUPE_TORCH_DIR})

include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/../support/expect.cmake")

run("install" ${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})

# The installed program, and the processes that it starts, have to find their libraries without a variable such as
# LD_LIBRARY_PATH.
set(bare env -i "ASAN_OPTIONS=$ENV{ASAN_OPTIONS}" "LSAN_OPTIONS=$ENV{LSAN_OPTIONS}" "TSAN_OPTIONS=$ENV{TSAN_OPTIONS}")
run("troupe --help" ${bare} ${prefix}/bin/troupe --help)
expect("troupe train --help")
foreach(line RANGE 600)
  file(APPEND "${work}/text.txt" "line ${line} of a text that repeats itself\n")
endforeach()
run("troupe train" ${bare} ${prefix}/bin/troupe train --data ${work}/text.txt --out ${work}/run --steps 2 --blocks 2
  --width 16 --heads 2 --context 16 --batch 8 --micro-batches 4 --single-process-seconds 0 --sample 20)
expect("gradients +verified bit for bit in 2 steps")

# Each header that a page names for programs.
file(GLOB pages "${SOURCE}/README.md" "${SOURCE}/docs/*.md")
set(headers)
foreach(page IN LISTS pages)
  file(READ "${page}" text)
  string(REGEX MATCHALL "troupe/[a-z0-9_/]+[.]hpp" named "${text}")
  list(APPEND headers ${named})
endforeach()
list(REMOVE_DUPLICATES headers)
if(NOT "troupe/engine/current_pass.hpp" IN_LIST headers)
  message(FATAL_ERROR "expected pages that name headers, among them troupe/engine/current_pass.hpp; got '${headers}' in '${pages}'")
endif()
list(TRANSFORM headers REPLACE "(.+)" "#include <\\1>\n")
file(WRITE "${work}/headers.cpp" ${headers})

run("configure" ${CMAKE_COMMAND} -S ${CONSUMER} -B ${consumer} -G ${GENERATOR}
  -DCMAKE_CXX_COMPILER=${CXX} -Dtroupe_DIR=${prefix}/${LIBDIR}/cmake/troupe -DHEADERS=${work}/headers.cpp ${flags})
run("build" ${CMAKE_COMMAND} --build ${consumer})
file(GLOB programs "${consumer}/*_consumer")
foreach(program IN LISTS programs)
  get_filename_component(name ${program} NAME)
  run("${name}" ${program})
  if(name STREQUAL node_consumer)
    expect("own messages right")
  endif()
endforeach()

# The CUDA kernels are loaded by their name: a user's program finds them, and so does the installed one.
if(KERNELS)
  run("node_consumer" ${consumer}/node_consumer)
  expect("kernels found")
  run("run path" objdump -p ${prefix}/bin/troupe)
  expect("PATH +[$]ORIGIN/../${LIBDIR}:")
endif()

# A library that knows only the installed headers, in the installed program. The node ends with its stdin.
execute_process(COMMAND ${bare} ${prefix}/bin/troupe node --name stage --load ${consumer}/libloaded_modules.so --until-silent 60
  INPUT_FILE /dev/null RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output TIMEOUT 60)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "troupe node --load failed (${status}):\n${output}")
endif()
expect("the library adds to node 'stage', own messages right")
expect("stage listens on 127.0.0.1")

# The runtime of a sanitizer has to be the first library of a process. A preloaded library would come before the runtime.
if(NOT SANITIZE)
  run("preloaded" ${bare} LD_PRELOAD=${prefix}/${LIBDIR}/libtroupe_preload.so TROUPE_REPORT=1 ${consumer}/plain_consumer)
  expect("one libtorch")
  expect("troupe: 1 backward passes, and 0 left to PyTorch's engine")
endif()

# Another version of CAF is refused where troupe is built, and where a user's program is.
file(WRITE "${work}/caf/include/caf/config.hpp" "#define CAF_VERSION 1805\n")
foreach(project IN ITEMS ${SOURCE} ${CONSUMER})
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${project} -B ${work}/caf/build -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX} --fresh
    -DTROUPE_TORCH_DIR=${TORCH} -Dtroupe_DIR=${prefix}/${LIBDIR}/cmake/troupe -DCMAKE_PREFIX_PATH=${work}/caf
    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  expect("Found unsuitable version \"0.18.5\".*CAF 0.17.6 is the package libcaf-dev of Debian")
endforeach()
