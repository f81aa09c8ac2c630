# SPDX-License-Identifier: BSD-3-Clause
# Run by ctest with SOURCE, BUILD, SCRATCH, CONSUMER, GENERATOR, CXX, LIBDIR and TORCH: a project that finds the packages Torch and
# troupe, in both orders, gets one libtorch, and no protobuf of a libtorch.
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
  file(GLOB targets "${TORCH}/share/cmake/Caffe2/Caffe2Targets*.cmake")
  foreach(file IN LISTS targets)
    get_filename_component(name "${file}" NAME)
    file(MAKE_DIRECTORY "${folder}/share/cmake/Caffe2")
    file(CREATE_LINK "${file}" "${folder}/share/cmake/Caffe2/${name}" SYMBOLIC)
  endforeach()
  file(WRITE "${folder}/share/cmake/Caffe2/Caffe2Config.cmake" "include(\"\${CMAKE_CURRENT_LIST_DIR}/Caffe2Targets.cmake\")\n")
  foreach(part IN ITEMS bin lib)
    file(CREATE_LINK "${TORCH}/${part}" "${folder}/${part}" SYMBOLIC)
  endforeach()
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

# What the cache of the build folder says: all parts of the package Torch are in one folder, and protobuf is in no libtorch.
function(expect_parts_of build folder)
  expect_status(0)
  foreach(part IN ITEMS Torch_DIR Caffe2_DIR TORCH_LIBRARY c10_LIBRARY)
    file(STRINGS "${build}/CMakeCache.txt" output REGEX "^${part}:")
    expect("=${folder}/(lib|share/cmake)/")
  endforeach()
  file(STRINGS "${build}/CMakeCache.txt" output REGEX "^[^/]*(PROTOBUF|Protobuf)_[^=]*=.*/torch/")
  if(output)
    message(FATAL_ERROR "expected the system's protobuf, got that of libtorch: ${output}")
  endif()
endfunction()

foreach(first IN ITEMS Torch troupe)
  set(build "${SCRATCH}/${first}_first")
  configure("${build}" -DFIRST=${first} -DCMAKE_PREFIX_PATH=${SCRATCH}/mine/torch)
  expect_parts_of("${build}" "${SCRATCH}/mine/torch")
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
  configure("${SCRATCH}/named" -DFIRST=troupe -DCMAKE_PREFIX_PATH=${SCRATCH}/third/torch -DTROUPE_TORCH_DIR=${SCRATCH}/${other}/torch)
  expect_parts_of("${SCRATCH}/named" "${SCRATCH}/${other}/torch")
  run("build" ${CMAKE_COMMAND} --build ${SCRATCH}/named --target own_message)
endforeach()
# Each way to name a package Torch is a way to name troupe's libtorch, also after a change.
foreach(way IN ITEMS CMAKE_PREFIX_PATH=${SCRATCH}/third/torch CMAKE_PREFIX_PATH=${SCRATCH}/mine/torch/share/cmake
  Torch_ROOT=${SCRATCH}/third/torch)
  configure("${SCRATCH}/ways" -DFIRST=troupe -DCMAKE_PREFIX_PATH=${SCRATCH}/mine/torch -D${way})
  string(REGEX REPLACE "^[^=]*=(.*/torch).*" "\\1" folder "${way}")
  expect_parts_of("${SCRATCH}/ways" "${folder}")
endforeach()
set(third -DFIRST=troupe -DCMAKE_PREFIX_PATH=${SCRATCH}/mine/torch -DTorch_DIR=${SCRATCH}/third/torch/share/cmake/Torch)
configure("${SCRATCH}/way" ${third})
expect_parts_of("${SCRATCH}/way" "${SCRATCH}/third/torch")
# So is it where troupe itself is built.
run("configure troupe" ${CMAKE_COMMAND} -S ${SOURCE} -B ${SCRATCH}/own -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX} -DTROUPE_TESTS=OFF
  -DTROUPE_BENCH=OFF -DCMAKE_PREFIX_PATH=${SCRATCH}/mine/torch -DTROUPE_TORCH_DIR=${SCRATCH}/third/torch)
set(status 0)
expect_parts_of("${SCRATCH}/own" "${SCRATCH}/third/torch")

# Two libtorchs: one error that names both.
configure("${SCRATCH}/two" -DFIRST=Torch -DCMAKE_PREFIX_PATH=${SCRATCH}/mine/torch -DTROUPE_TORCH_DIR=${SCRATCH}/third/torch)
expect_status(1)
expect("expected one libtorch, got two: TROUPE_TORCH_DIR is '${SCRATCH}/third/torch', and the package Torch is that of '${SCRATCH}/mine/torch'")
configure("${SCRATCH}/two" -DFIRST=troupe -DTROUPE_TORCH_DIR=${SCRATCH}/third/torch -DTorch_DIR=${SCRATCH}/mine/torch/share/cmake/Torch)
expect_status(1)
expect("expected one libtorch, got two")
configure("${SCRATCH}/mixed" ${third} -DFIRST=Torch)
expect_status(1)
expect("expected one libtorch, got two: the package Torch is that of '${SCRATCH}/third/torch', and its [A-Za-z0-9]+_(DIR|LIBRARY) is \
'${SCRATCH}/mine/torch/")
configure("${SCRATCH}/own_protobuf" -DFIRST=Protobuf -DCMAKE_PREFIX_PATH=${SCRATCH}/mine/torch)
expect_status(1)
expect("expected the system's protobuf, got that of libtorch: Protobuf_[A-Z_]+ is '${SCRATCH}/mine/torch/")
foreach(first IN ITEMS Torch troupe)
  configure("${SCRATCH}/${first}_older" -DFIRST=${first} -DCMAKE_PREFIX_PATH=${SCRATCH}/older/torch)
  expect_status(1)
  expect("expected libtorch [0-9.]+, with which troupe was built [^;]*; got libtorch 2.9.0 in '${SCRATCH}/older/torch'")
endforeach()
