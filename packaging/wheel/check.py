"""Checks that the libraries of a wheel run on every Linux that its tag names.

check.py PACKAGE MACHINE GLIBC   e.g. check.py package/posenc x86_64 2.28

Each library must be for MACHINE, need only libraries that are beside it or on every such Linux, and ask for no version of a symbol
newer than that Linux has. The extension may use those functions of Python that 3.9 exports. Every module that another one imports must
be there.
"""

import ast
import re
import subprocess
import sys
from pathlib import Path

# What PEP 600 lets a wheel take from the system, as far as it is used here.
SYSTEM = re.compile(r"(lib(c|m|dl|rt|pthread)\.so\.\d+|libgcc_s\.so\.1|ld-linux[\w.-]+)$")
# GCC 8, the compiler of the oldest systems with glibc 2.28 (Debian 10, RHEL 8); gcc.gnu.org, libstdc++ manual, "ABI Policy".
OF_GCC_8 = {"GLIBCXX": (3, 4, 25), "CXXABI": (1, 3, 11), "GCC": (7, 0, 0)}
UNDEFINED = re.compile(r"^[0-9a-f]+ (.{7}) \*UND\*\s+[0-9a-f]+\s+(?:\(?(\w+?)_([\d.]+)\)?\s+|Base\s+)?(\S+)$", re.MULTILINE)
ELF_MACHINES = {"x86_64": 62, "aarch64": 183}  # e_machine; objdump of one machine calls all others elf64-little
# Exported by CPython 3.9. A new one belongs here once it was found there: later headers declare more than 3.9 has. Headers from 3.13
# on name the functions that read arguments without _SizeT: they differ for formats with '#', and none is used.
PYTHON_39 = set("""
PyBaseObject_Type PyBuffer_Release PyBytes_AsStringAndSize PyCapsule_GetPointer PyCapsule_IsValid PyCapsule_New
PyDict_GetItemString PyDict_GetItemWithError PyDict_New PyDict_SetItem PyDict_Size PyList_Append PyList_New PyErr_Clear
PyErr_ExceptionMatches PyErr_Format PyErr_NewExceptionWithDoc PyErr_NoMemory PyErr_Occurred PyErr_SetString
PyEval_RestoreThread PyEval_SaveThread PyExc_BufferError PyExc_ImportError PyExc_MemoryError
PyExc_NotImplementedError PyExc_RuntimeError PyExc_TypeError PyExc_ValueError PyFloat_AsDouble PyFloat_FromDouble
PyImport_ImportModule PyIndex_Check PyLong_AsLong PyLong_AsLongLong PyLong_AsVoidPtr PyLong_FromLong PyLong_FromLongLong
PyMem_Calloc PyMem_Free PyMem_Malloc PyModule_AddObject PyModule_Create2 PyNumber_Index PyObject_Call PyObject_CallFunctionObjArgs
PyObject_CheckBuffer PyObject_GetAttr PyObject_GetAttrString PyObject_GetBuffer PyObject_HasAttr PyObject_IsTrue PyTuple_GetItem
PyTuple_New PyTuple_Size PyType_GetFlags PyType_IsSubtype PyUnicode_AsUTF8AndSize PyUnicode_FromString
PyUnicode_InternFromString _PyArg_ParseTuple_SizeT _PyObject_CallMethod_SizeT _Py_BuildValue_SizeT _Py_Dealloc _Py_NoneStruct
_Py_TrueStruct _Py_FalseStruct PyArg_ParseTuple PyObject_CallMethod Py_BuildValue
""".split())


def parse(version):
    return tuple(map(int, version.split(".")))


def faults_of_symbols(listing, most, ours):
    """What `objdump -T` shows that the oldest system lacks. `ours`: the names that libraries beside this one export."""
    found = []
    for flags, family, version, name in UNDEFINED.findall(listing):
        if family:
            if family not in most:
                found.append(f"{name} has the version {family}_{version}, of a library that is not on every Linux")
            elif parse(version) > most[family]:
                newest = ".".join(map(str, most[family]))
                found.append(f"{name} needs {family}_{version}, newer than {family}_{newest}")
        elif name.startswith(("Py", "_Py")):
            if name not in PYTHON_39:
                found.append(f"{name} is not known to be in Python 3.9 (PYTHON_39 in check.py)")
        elif "w" not in flags and name not in ours:
            found.append(f"{name} is undefined")
    return found


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True).stdout


def exported(path):
    return {line.split()[-1] for line in run("objdump", "-T", path).splitlines() if " *UND* " not in line and " g " in line}


def missing_modules(package):
    """What modules of the package import from it, and it does not have."""
    found = set()
    for path in sorted(package.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module:
                name = node.module.split(".")[0]
                if not any(package.glob(f"{name}.*")) and not (package / name).is_dir():
                    found.add(f"{path.name}: imports {name}, which is not in the package")
    return sorted(found)


def check(package, machine, glibc):
    """Every fault of the modules and libraries below `package`, as lines; and how many libraries there are."""
    most = {**OF_GCC_8, "GLIBC": parse(glibc)}
    libraries = sorted(path for path in package.rglob("*.so*") if path.is_file())
    inside, faults = {path.name for path in libraries}, missing_modules(package)
    ours = set().union(*(exported(path) for path in libraries)) if libraries else set()
    for path in libraries:
        heads = run("objdump", "-p", path)
        if int.from_bytes(path.read_bytes()[18:20], "little") != ELF_MACHINES[machine]:
            faults.append(f"{path.name}: is not for {machine}")
        for needed in re.findall(r"NEEDED\s+(\S+)", heads):
            if needed not in inside and not SYSTEM.match(needed):
                faults.append(f"{path.name}: needs {needed}, which is not on every Linux")
        faults += [f"{path.name}: {fault}" for fault in faults_of_symbols(run("objdump", "-T", path), most, ours)]
    return faults, len(libraries)


def main():
    if len(sys.argv) != 4 or sys.argv[2] not in ELF_MACHINES or not re.fullmatch(r"\d+\.\d+", sys.argv[3]):
        sys.exit("usage: check.py PACKAGE x86_64|aarch64 GLIBC")
    faults, count = check(Path(sys.argv[1]), *sys.argv[2:])
    if not count:
        sys.exit(f"check: there is no library in {sys.argv[1]}")
    for fault in faults:
        print(fault)
    if faults:
        sys.exit(f"check: {len(faults)} faults in {count} libraries for {sys.argv[2]} with glibc {sys.argv[3]}")
    print(f"check: {count} libraries run on {sys.argv[2]} with glibc {sys.argv[3]}")


if __name__ == "__main__":
    main()
