# Makes each case of the built native tests a test of ctest: cmake -DPROGRAM=... -DOUTPUT=... -P discover.cmake
execute_process(COMMAND ${PROGRAM} --list OUTPUT_VARIABLE cases COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n]+" cases "${cases}")
set(tests "")
foreach(case ${cases})
  string(APPEND tests "add_test(\"${case}\" \"${PROGRAM}\" \"${case}\")\n")
endforeach()
file(WRITE ${OUTPUT} "${tests}")
