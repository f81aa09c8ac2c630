# SPDX-License-Identifier: BSD-3-Clause
# One helper for each kind of target. Sources are relative to the calling folder. DEPENDS are targets (troupe::engine,
# LibTorch::torch_cpu, CAF::io, troupe::protobuf, ...).

# <troupe/engine/plan.hpp> means engine/plan.hpp, here as in the installed package.
set(troupe_include_root "${PROJECT_BINARY_DIR}/include")
set(troupe_generated_root "${PROJECT_BINARY_DIR}/generated")
file(MAKE_DIRECTORY "${troupe_include_root}/troupe" "${troupe_generated_root}")
foreach(folder IN ITEMS messages engine devices actors)
  file(CREATE_LINK "${PROJECT_SOURCE_DIR}/${folder}" "${troupe_include_root}/troupe/${folder}" SYMBOLIC)
endforeach()
file(CREATE_LINK "${PROJECT_SOURCE_DIR}/actors/troupe.hpp"
  "${troupe_include_root}/troupe/troupe.hpp" SYMBOLIC)

# `ninja` builds libraries and programs. `ninja tests` and `ninja benchmarks` build the rest.
add_custom_target(tests)
add_custom_target(benchmarks)
add_custom_target(generated) # only the headers that protobuf generates, for tools that read sources

# One precompiled header per flavour, built when the first target asks for it:
#   torch  tensors and the autograd graph          (engine and its tests)
#   io     actors and their network, no libtorch   (the network of actors and its tests)
#   caf    both                                    (messages, devices, actors and their tests)
#   nn     the same, and modules and optimizers    (apps, bench, tests that need torch/torch.h)
# With g++ a unit then takes 2, 3 and 5 s before its own code, instead of 8, 11 and 20 s. Each unit instantiates the
# templates of its headers again, so no flavour has more than its users need. FOR_TESTS adds Boost.Test to the flavour.
# With clang++, Boost.Test is a second precompiled header on top of that of the libraries; it takes one second instead
# of up to 28 s.
function(_troupe_precompile target flavour)
  cmake_parse_arguments(PARSE_ARGV 2 arg "FOR_TESTS" "" "")
  if(NOT TROUPE_PCH OR flavour STREQUAL "none")
    return()
  endif()
  _troupe_make_pch(${flavour})
  set(pch troupe_pch_${flavour})
  if(arg_FOR_TESTS)
    _troupe_make_test_pch(${flavour})
    string(APPEND pch "_test")
  endif()
  target_precompile_headers(${target} REUSE_FROM ${pch})
endfunction()

function(_troupe_make_pch flavour)
  set(header "${PROJECT_SOURCE_DIR}/cmake/pch/${flavour}.hpp")
  if(NOT EXISTS "${header}")
    message(FATAL_ERROR "no precompiled header flavour '${flavour}'; use torch, io, caf, nn or none")
  endif()
  if(NOT TARGET troupe_pch_${flavour})
    _troupe_pch_target(troupe_pch_${flavour} ${flavour} "${header}")
  endif()
endfunction()

function(_troupe_make_test_pch flavour)
  set(pch troupe_pch_${flavour}_test)
  if(TARGET ${pch})
    return()
  endif()
  set(headers "${PROJECT_SOURCE_DIR}/cmake/pch/test.hpp")
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL Clang)
    list(PREPEND headers "${PROJECT_SOURCE_DIR}/cmake/pch/${flavour}.hpp")
  endif()
  _troupe_pch_target(${pch} ${flavour} "${headers}")
  _troupe_test_flags(${pch})
  if(CMAKE_CXX_COMPILER_ID STREQUAL Clang)
    get_target_property(below troupe_pch_${flavour} TROUPE_PCH_FILE)
    get_target_property(folder ${pch} TROUPE_PCH_FOLDER)
    target_compile_options(${pch} PRIVATE "SHELL:-Xclang -include-pch -Xclang ${below}")
    add_dependencies(${pch} troupe_pch_${flavour})
    set_source_files_properties("${folder}/cmake_pch.hxx.cxx" PROPERTIES OBJECT_DEPENDS "${below}")
  endif()
endfunction()

function(_troupe_pch_target pch flavour headers)
  file(WRITE "${PROJECT_BINARY_DIR}/pch/${pch}.cpp.new" "// holds a precompiled header\n")
  file(COPY_FILE "${PROJECT_BINARY_DIR}/pch/${pch}.cpp.new"
    "${PROJECT_BINARY_DIR}/pch/${pch}.cpp" ONLY_IF_DIFFERENT)
  add_library(${pch} OBJECT "${PROJECT_BINARY_DIR}/pch/${pch}.cpp")
  target_precompile_headers(${pch} PRIVATE ${headers})
  if(NOT flavour STREQUAL "io")
    target_link_libraries(${pch} PRIVATE LibTorch::torch_cpu)
  endif()
  if(NOT flavour STREQUAL "torch")
    target_link_libraries(${pch} PRIVATE CAF::openssl)
  endif()
  set(suffix gch)
  if(CMAKE_CXX_COMPILER_ID STREQUAL Clang)
    set(suffix pch)
  endif()
  # ccache uses this text in place of the precompiled header's content, because the content is up to half a gigabyte,
  # and GCC writes different bytes each time.
  file(GLOB sources "${PROJECT_SOURCE_DIR}/cmake/pch/*.hpp")
  if(NOT flavour STREQUAL "io") # no other flavour includes it
    list(REMOVE_ITEM sources "${PROJECT_SOURCE_DIR}/cmake/pch/io.hpp")
  endif()
  set(sum "${pch} ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} ${CAF_VERSION} ${LibTorch_VERSION} ${Boost_VERSION}")
  foreach(source IN LISTS sources)
    file(SHA256 "${source}" source_sum)
    string(APPEND sum " ${source_sum}")
  endforeach()
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${pch}.dir")
  file(WRITE "${folder}/cmake_pch.hxx.${suffix}.sum" "${sum}\n")
  set_target_properties(${pch} PROPERTIES
    TROUPE_PCH_FOLDER "${folder}" TROUPE_PCH_FILE "${folder}/cmake_pch.hxx.${suffix}")
endfunction()

function(_troupe_test_flags target)
  target_link_libraries(${target} PRIVATE Boost::unit_test_framework)
  target_compile_definitions(${target} PRIVATE BOOST_TEST_DYN_LINK)
  _troupe_unoptimised(${target})
endfunction()

# The tested code is optimised in full. The tests themselves are not optimised and compile in half the time. Clang would
# refuse the libraries' precompiled header because of this difference, although the difference does not change what was
# parsed. So this check is off.
function(_troupe_unoptimised target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O0>)
  if(TROUPE_PCH AND CMAKE_CXX_COMPILER_ID STREQUAL Clang)
    target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-validate-pch")
  endif()
endfunction()

# A small unit takes half of its compile time for its headers, because each unit compiles the templates and inline
# functions of its headers again. So several sources are compiled as one. GCC would warn, because anonymous namespaces
# are then in included files.
function(_troupe_unity target batch)
  if(TROUPE_UNITY AND batch GREATER 1)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${batch})
    if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
      target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
    endif()
  endif()
endfunction()

# troupe_add_library(<name> [SHARED] [NO_INSTALL] SOURCES <file>... [PROTOS <file.proto>...]
#                    [DEPENDS <target>...] [INSIDE <target>...] [PCH torch|io|caf|nn|none] [UNITY <sources in a unit>])
# Makes the target troupe_<name> with the alias troupe::<name>, and installs it. A proto becomes
# <troupe/<folder>/generated/<file>.pb.h>. INSIDE are libraries of headers that only sources include: users of the installed
# library do not need them. The default of PCH is caf.
function(troupe_add_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SHARED;NO_INSTALL" "PCH;UNITY" "SOURCES;PROTOS;DEPENDS;INSIDE")
  _troupe_check_arguments(${name})
  set(target troupe_${name})
  if(arg_SHARED)
    add_library(${target} SHARED ${arg_SOURCES})
  else()
    add_library(${target} STATIC ${arg_SOURCES})
  endif()
  add_library(troupe::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${troupe_include_root}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${target} PUBLIC ${arg_DEPENDS})
  foreach(library IN LISTS arg_INSIDE)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:${library}>)
  endforeach()
  if(arg_PROTOS)
    _troupe_generate_protobuf(${target} ${arg_PROTOS})
  endif()
  if(NOT arg_PCH)
    set(arg_PCH caf)
  endif()
  _troupe_precompile(${target} ${arg_PCH})
  _troupe_unity(${target} "${arg_UNITY}")
  if(NOT arg_NO_INSTALL)
    install(TARGETS ${target} EXPORT troupeTargets)
  endif()
endfunction()

function(_troupe_generate_protobuf target)
  foreach(proto IN LISTS ARGN)
    get_filename_component(source "${proto}" ABSOLUTE)
    get_filename_component(source_folder "${source}" DIRECTORY)
    get_filename_component(stem "${source}" NAME_WLE)
    file(RELATIVE_PATH relative_folder "${PROJECT_SOURCE_DIR}" "${source_folder}")
    # protobuf knows a proto by this name in the whole process, so a user's checkpoint.proto must have another one.
    set(name "troupe/${relative_folder}/generated")
    set(folder "${troupe_generated_root}/${name}")
    file(MAKE_DIRECTORY "${folder}")
    add_custom_command(
      OUTPUT "${folder}/${stem}.pb.cc" "${folder}/${stem}.pb.h"
      COMMAND protobuf::protoc --proto_path=${name}=${source_folder} --cpp_out=${troupe_generated_root} ${source}
      DEPENDS "${source}" VERBATIM)
    list(APPEND headers "${folder}/${stem}.pb.h")
    set_source_files_properties("${folder}/${stem}.pb.cc" PROPERTIES
      SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON COMPILE_OPTIONS -w)
    target_sources(${target} PRIVATE "${folder}/${stem}.pb.cc" "${folder}/${stem}.pb.h")
  endforeach()
  # As a system folder, because troupe does not mend warnings of generated code.
  target_include_directories(${target} SYSTEM PUBLIC $<BUILD_INTERFACE:${troupe_generated_root}>)
  target_link_libraries(${target} PUBLIC troupe::protobuf)
  add_custom_target(${target}_generated DEPENDS ${headers})
  add_dependencies(generated ${target}_generated)
endfunction()

# troupe_add_program(<name> SOURCES <file>... [DEPENDS <target>...] [PCH <flavour>] [INSTALL]
#                    [UNITY <sources in a unit>])
# Makes the executable <name> in the calling folder's build folder. The default of PCH is nn. A program under tests/ is
# built with the tests, a program under bench/ with the benchmarks.
function(troupe_add_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "INSTALL" "PCH;UNITY" "SOURCES;DEPENDS")
  _troupe_check_arguments(${name})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS})
  if(NOT arg_PCH)
    set(arg_PCH nn)
  endif()
  _troupe_precompile(${name} ${arg_PCH})
  _troupe_unity(${name} "${arg_UNITY}")
  file(RELATIVE_PATH folder "${PROJECT_SOURCE_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}")
  if(folder MATCHES "^tests")
    add_dependencies(tests ${name})
  elseif(folder MATCHES "^bench")
    add_dependencies(benchmarks ${name})
  endif()
  if(arg_INSTALL)
    # The folder is named here, because CMAKE_INSTALL_RPATH_USE_LINK_PATH leaves out folders inside the project, such as
    # .venv's libtorch. The first folder has the CUDA kernels.
    set_target_properties(${name} PROPERTIES
      INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR};$<TARGET_FILE_DIR:LibTorch::torch_cpu>")
    install(TARGETS ${name})
  endif()
endfunction()

# troupe_add_test(<name> KIND engine|actor|cluster|timed SOURCES <file>... [DEPENDS <target>...]
#                 [PCH <flavour>] [OPTIMISED] [TIMEOUT <seconds>] [ENVIRONMENT <NAME=value>...]
#                 [ARGUMENTS <argument>...])
# Makes a Boost.Test program and registers it with ctest under <name> and the label KIND. Test files include
# <boost/test/unit_test.hpp> and define no module, because support/main.cpp does. Programs find files of the source tree
# by the macro TROUPE_SOURCE_DIR, and other programs by generator expressions in ENVIRONMENT
# (TROUPE_PROGRAM=$<TARGET_FILE:troupe>). OPTIMISED is for a test that spends its time in its own code.
#   engine   no actor system, one core
#   actor    deterministic scheduler, one core
#   cluster  nodes on loopback; ctest runs one such test at a time
#   timed    as cluster, with limits in seconds; ctest runs such a test alone
# Helpers that tests share are in tests/support and are included as "support/<name>.hpp".
function(troupe_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "OPTIMISED" "KIND;PCH;TIMEOUT" "SOURCES;DEPENDS;ENVIRONMENT;ARGUMENTS")
  _troupe_check_arguments(${name})
  if(NOT arg_KIND MATCHES "^(engine|actor|cluster|timed)$")
    message(FATAL_ERROR "troupe_add_test(${name}): KIND is '${arg_KIND}', "
      "expected engine, actor, cluster or timed")
  endif()
  add_executable(${name} ${arg_SOURCES} $<TARGET_OBJECTS:troupe_test_main>)
  list(LENGTH arg_SOURCES sources)
  if(sources GREATER 1)
    _troupe_unity(${name} 10)
  endif()
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS} Boost::unit_test_framework)
  target_compile_definitions(${name} PRIVATE BOOST_TEST_DYN_LINK
    TROUPE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  add_dependencies(tests ${name})
  if(NOT arg_PCH AND arg_KIND STREQUAL engine)
    set(arg_PCH torch)
  elseif(NOT arg_PCH)
    set(arg_PCH caf)
  endif()
  if(arg_OPTIMISED)
    _troupe_precompile(${name} ${arg_PCH})
  else()
    _troupe_test_flags(${name})
    _troupe_precompile(${name} ${arg_PCH} FOR_TESTS)
  endif()
  add_test(NAME ${name} COMMAND ${name} --log_level=test_suite ${arg_ARGUMENTS})
  troupe_test_properties(${name} ${arg_KIND} "${arg_TIMEOUT}" ${arg_ENVIRONMENT})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 240)
  endif()
  set_target_properties(${name} PROPERTIES TROUPE_KIND ${arg_KIND} TROUPE_TIMEOUT ${arg_TIMEOUT}) # for packaging/bundle
endfunction()

# Sets label, timeout and environment of the ctest test <name>. Also for tests that are not Boost.Test programs.
function(troupe_test_properties name kind timeout)
  if(NOT timeout)
    set(timeout 180)
    if(kind MATCHES "cluster|timed")
      set(timeout 240)
    endif()
  endif()
  if(TROUPE_SANITIZE)
    math(EXPR timeout "${timeout} * 5")
  endif()
  # Without the first, waiting OpenMP threads would spin on a core that the next test needs. Colours would hide the word
  # "error" from `make test`, which looks for the checks that failed.
  set(environment OMP_WAIT_POLICY=passive BOOST_TEST_COLOR_OUTPUT=no ${ARGN} ${TROUPE_SANITIZER_ENVIRONMENT})
  set_tests_properties(${name} PROPERTIES LABELS ${kind} TIMEOUT ${timeout}
    ENVIRONMENT "${environment}")
  # Expensive tests begin first. Tests that wait for each other (cluster) run beside the others. Tests that run alone
  # come last.
  if(kind STREQUAL cluster)
    set_tests_properties(${name} PROPERTIES RESOURCE_LOCK cluster COST 3)
  elseif(kind STREQUAL timed)
    set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
  else()
    set_tests_properties(${name} PROPERTIES COST 1)
  endif()
endfunction()

macro(_troupe_check_arguments name)
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
    message(FATAL_ERROR "${name}: expected SOURCES <file>... and named arguments; "
      "not understood: '${arg_UNPARSED_ARGUMENTS}'")
  endif()
endmacro()
