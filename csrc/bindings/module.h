// What each file of bindings/ adds to the extension module.
#pragma once

#include <pybind11/pybind11.h>

namespace embodied_mem {

void BindAlfworld(pybind11::module_& module);
void BindEbAlfred(pybind11::module_& module);
void BindEbHabitat(pybind11::module_& module);
void BindMemento(pybind11::module_& module);
void BindMemory(pybind11::module_& module);
void BindModels(pybind11::module_& module);
void BindScienceworld(pybind11::module_& module);
void BindSupersession(pybind11::module_& module);
void BindVectors(pybind11::module_& module);

}  // namespace embodied_mem
