// The extension module: registers the errors and one submodule per part of the library.
#include <pybind11/pybind11.h>

#include <cstring>
#include <exception>
#include <new>

#include "bindings/module.h"
#include "core/error.h"

namespace py = pybind11;

namespace {

void Raise(const char* error_class, const char* message) {
  const py::object type = py::module_::import("embodied_mem.errors").attr(error_class);
  const auto text = py::reinterpret_steal<py::object>(
      PyUnicode_DecodeUTF8(message, static_cast<Py_ssize_t>(std::strlen(message)), "replace"));
  if (text) PyErr_SetObject(type.ptr(), text.ptr());  // a path may be no UTF-8
}

}  // namespace

PYBIND11_MODULE(_native, module) {
  module.doc() = "Native parts of embodied_mem; use embodied_mem.envs and its neighbours rather than this module.";
  py::register_exception_translator([](std::exception_ptr pointer) {
    if (!pointer) return;
    try {
      std::rethrow_exception(pointer);
    } catch (const embodied_mem::GameFileError& error) {
      Raise("GameFileError", error.what());
    } catch (const embodied_mem::InvalidInputError& error) {
      Raise("InvalidInputError", error.what());
    } catch (const embodied_mem::StorageError& error) {
      Raise("StorageError", error.what());
    } catch (const embodied_mem::InternalError& error) {
      Raise("InternalError", error.what());
    }
  });
  embodied_mem::BindAlfworld(module);
  embodied_mem::BindEbAlfred(module);
  embodied_mem::BindEbHabitat(module);
  embodied_mem::BindMemento(module);
  embodied_mem::BindMemory(module);
  embodied_mem::BindModels(module);
  embodied_mem::BindScienceworld(module);
  embodied_mem::BindSupersession(module);
  embodied_mem::BindVectors(module);
}
