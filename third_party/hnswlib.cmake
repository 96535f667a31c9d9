# Sets HNSWLIB_INCLUDE_DIR: given, or the system's copy (libhnswlib-dev) where it is new enough, or the pinned source,
# which third_party/fetch.py gets through pip and keeps in EMBODIED_MEM_THIRD_PARTY for all build folders.
set(EMBODIED_MEM_THIRD_PARTY "${CMAKE_SOURCE_DIR}/build/third_party" CACHE PATH "Where fetched sources are kept")

find_path(HNSWLIB_INCLUDE_DIR hnswlib/hnswlib.h HINTS ENV HNSWLIB_INCLUDE_DIR)
# 0.8 brought stop conditions; the members that csrc/memory/vectors/hnsw_graph.cpp builds on are the same since.
if(HNSWLIB_INCLUDE_DIR AND NOT EXISTS "${HNSWLIB_INCLUDE_DIR}/hnswlib/stop_condition.h")
  message(STATUS "hnswlib in ${HNSWLIB_INCLUDE_DIR} is older than 0.8: taking the pinned source")
  unset(HNSWLIB_INCLUDE_DIR CACHE)
endif()
if(NOT HNSWLIB_INCLUDE_DIR)
  find_package(Python COMPONENTS Interpreter)
  set(reason "no Python interpreter was found")
  set(status 1)
  if(Python_EXECUTABLE)
    execute_process(COMMAND ${Python_EXECUTABLE} ${CMAKE_SOURCE_DIR}/third_party/fetch.py hnswlib ${EMBODIED_MEM_THIRD_PARTY}
                    RESULT_VARIABLE status OUTPUT_VARIABLE folder ERROR_VARIABLE reason OUTPUT_STRIP_TRAILING_WHITESPACE)
  endif()
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "hnswlib, which the vector index needs, was not found. Do one of these:\n"
      "  - install it for the system (Debian, Ubuntu: apt install libhnswlib-dev; 0.8 or later)\n"
      "  - let pip reach a package index, or a folder that has its sdist (PIP_FIND_LINKS=<folder> PIP_NO_INDEX=1)\n"
      "  - unpack hnswlib 0.8.0 yourself and set HNSWLIB_INCLUDE_DIR, as a variable of the environment or with -D, to "
      "the folder that holds hnswlib/hnswlib.h\nWhat was tried: ${reason}")
  endif()
  set(HNSWLIB_INCLUDE_DIR "${folder}" CACHE PATH "The folder that holds hnswlib/hnswlib.h" FORCE)
endif()
message(STATUS "hnswlib: ${HNSWLIB_INCLUDE_DIR}")
