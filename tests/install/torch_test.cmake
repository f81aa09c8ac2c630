# SPDX-License-Identifier: BSD-3-Clause
# Run by ctest with BUILD, SCRATCH, CONSUMER, GENERATOR, CXX, LIBDIR and TORCH: a project that finds the packages Torch and troupe, in
# both orders, gets one libtorch.
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/../support/expect.cmake")
unset(ENV{TROUPE_TORCH_DIR})
unset(ENV{CMAKE_PREFIX_PATH})
file(REMOVE_RECURSE "${SCRATCH}")
run("install" ${CMAKE_COMMAND} --install ${BUILD} --prefix ${SCRATCH}/prefix)

# Other libtorchs, by links to the one with which troupe was built.
foreach(other IN ITEMS mine third older)
  set(folder "${SCRATCH}/${other}/torch")
  file(MAKE_DIRECTORY "${folder}/share/cmake/Torch")
  file(COPY "${CMAKE_CURRENT_LIST_DIR}/TorchConfig.cmake" DESTINATION "${folder}/share/cmake/Torch")
  file(CREATE_LINK "${TORCH}/share/cmake/Caffe2" "${folder}/share/cmake/Caffe2" SYMBOLIC)
  file(CREATE_LINK "${TORCH}/lib" "${folder}/lib" SYMBOLIC)
  if(EXISTS "${TORCH}/../nvidia") # libtorch looks for some of its libraries there
    file(CREATE_LINK "${TORCH}/../nvidia" "${SCRATCH}/${other}/nvidia" SYMBOLIC)
  endif()
  if(other STREQUAL older)
    file(WRITE "${folder}/include/ATen/ATen.h" "")
    file(WRITE "${folder}/include/torch/headeronly/version.h"
      "#define TORCH_VERSION_MAJOR 2\n#define TORCH_VERSION_MINOR 9\n#define TORCH_VERSION_PATCH 0\n")
  else()
    file(CREATE_LINK "${TORCH}/include" "${folder}/include" SYMBOLIC)
  endif()
endforeach()

# Sets `status` and `output`, in which white space is one blank, because CMake breaks the lines of its errors.
function(configure build)
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${CONSUMER} -B ${build} -G ${GENERATOR} -DCMAKE_BUILD_TYPE=Debug
    -DCMAKE_CXX_COMPILER=${CXX} -Dtroupe_DIR=${SCRATCH}/prefix/${LIBDIR}/cmake/troupe ${ARGN}
    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  string(REGEX REPLACE "[ \n]+" " " output "${output}")
  set(output "${output}" PARENT_SCOPE)
  set(status "${status}" PARENT_SCOPE)
endfunction()

function(expect_status expected)
  if(NOT status EQUAL expected)
    message(FATAL_ERROR "configure: expected the status ${expected}, got ${status}:\n${output}")
  endif()
endfunction()

foreach(first IN ITEMS Torch troupe)
  set(build "${SCRATCH}/${first}_first")
  configure("${build}" -DFIRST=${first} -DCMAKE_PREFIX_PATH=${SCRATCH}/mine/torch)
  expect_status(0)
  file(STRINGS "${build}/CMakeCache.txt" output REGEX "(PROTOBUF|Protobuf)_INCLUDE_DIR:.*/torch/include")
  if(output)
    message(FATAL_ERROR "expected the system's protobuf, got that of libtorch: ${output}")
  endif()
  run("build" ${CMAKE_COMMAND} --build ${build})
  run("torch_consumer" ${build}/torch_consumer)
  expect("gradients right")
  run("run path" objdump -p ${build}/torch_consumer)
  expect("PATH +([^\n]*:)?${SCRATCH}/mine/torch/lib\n")
  string(FIND "${output}" "${TORCH}/lib" other_libtorch)
  if(NOT other_libtorch EQUAL -1)
    message(FATAL_ERROR "expected one libtorch in the run path:\n${output}")
  endif()
endforeach()

# The package Torch that comes later is that of TROUPE_TORCH_DIR, also where CMake would look elsewhere, and after a change.
foreach(other IN ITEMS mine third)
  configure("${SCRATCH}/named" -DFIRST=troupe -DCMAKE_PREFIX_PATH=${SCRATCH}/older/torch -DTROUPE_TORCH_DIR=${SCRATCH}/${other}/torch)
  expect_status(0)
  file(STRINGS "${SCRATCH}/named/CMakeCache.txt" output REGEX "^Torch_DIR")
  expect("=${SCRATCH}/${other}/torch/share/cmake/Torch")
endforeach()

# Two libtorchs: one error that names both.
configure("${SCRATCH}/two" -DFIRST=Torch -DCMAKE_PREFIX_PATH=${SCRATCH}/mine/torch -DTROUPE_TORCH_DIR=${SCRATCH}/third/torch)
expect_status(1)
expect("expected one libtorch, got two: TROUPE_TORCH_DIR is '${SCRATCH}/third/torch', and the package Torch is that of '${SCRATCH}/mine/torch'")
configure("${SCRATCH}/two" -DFIRST=troupe -DTROUPE_TORCH_DIR=${SCRATCH}/third/torch -DTorch_DIR=${SCRATCH}/mine/torch/share/cmake/Torch)
expect_status(1)
expect("expected one libtorch, got two")
foreach(first IN ITEMS Torch troupe)
  configure("${SCRATCH}/${first}_older" -DFIRST=${first} -DCMAKE_PREFIX_PATH=${SCRATCH}/older/torch)
  expect_status(1)
  expect("expected libtorch [0-9.]+, with which troupe was built [^;]*; got libtorch 2.9.0 in '${SCRATCH}/older/torch'")
endforeach()
