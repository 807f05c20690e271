#!/usr/bin/python3
"""The shared library exports what the public headers declare: exports.py SOURCE_DIR LIBRARY CXX_COMPILER [--write]

Three lists must be one: src/exports.txt, what nm finds in the library, and what the headers declare. For the last one
doxygen lists the public functions, a program is made that uses each of them, and the compiler says what the program
needs of the library. --write writes src/exports.txt anew, from the library. 77 where there is no doxygen: skipped.
"""
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

OURS = re.compile(r"tutti_|_ZNK?5tutti|_ZT[ISV]N5tutti")  # mangled
HEAD = """\
#include <new>
#include <type_traits>
#include <typeinfo>
{includes}
namespace tutti::every_public_name {{
template <class T>
const std::type_info* type_of() {{
  if constexpr (std::is_polymorphic_v<T>) return &typeid(T);
  return nullptr;
}}
"""


def run(*command, stdin=None):
    return subprocess.run(command, input=stdin, stdout=subprocess.PIPE, text=True, check=True).stdout


def read_headers(source, folder):
    """Doxygen's XML of the public headers."""
    config = (source / "docs/Doxyfile").read_text().replace("$(TUTTI_API_DOCS)", str(folder))
    run("sh", "-c", 'cd "$0" && doxygen -', str(source), stdin=config + "GENERATE_HTML = NO\nGENERATE_XML = YES\n")
    return [ElementTree.parse(path).getroot() for path in sorted((folder / "xml").glob("*.xml"))
            if path.name not in ("index.xml", "Doxyfile.xml")]


def text_of(node):
    return "".join(node.itertext()) if node is not None else ""


def use_of(function, number, owner):
    """C++ that uses the function; nothing for what has no symbol: templates, and what is purely virtual or deleted."""
    name = function.findtext("name")
    if function.find("templateparamlist") is not None or function.get("virt") == "pure-virtual":
        return ""
    if "delete" in function.findtext("argsstring", ""):
        return ""
    types = [text_of(parameter.find("type")) for parameter in function.findall("param")]
    types = [] if types == ["void"] else types
    plain = owner and owner.rsplit("::", 1)[-1]
    parameters = "".join(f", {kind} a{i}" for i, kind in enumerate(types))
    arguments = ", ".join(f"static_cast<decltype(a{i})&&>(a{i})" for i in range(len(types)))
    if owner and function.get("virt") == "virtual" and name != "~" + plain:  # a pointer to it would be a number
        return f"void use{number}({owner}& object{parameters}) {{ (void)object.{owner}::{name}({arguments}); }}\n"
    if owner and name == plain:
        return f"void use{number}(void* at{parameters}) {{ ::new (at) {owner}({arguments}); }}\n"
    if owner and name == "~" + plain:
        return f"void use{number}({owner}& object) {{ object.{plain}::~{plain}(); }}\n"
    is_member = owner and function.get("static") == "no"
    pointer = f"({owner}::*use{number})" if is_member else f"(*use{number})"
    result = text_of(function.find("type")).removeprefix("static ") or name.removeprefix("operator ")
    const = " const" if function.get("const") == "yes" else ""
    return f"{result} {pointer}({', '.join(types)}){const} = &::{function.findtext('qualifiedname', name)};\n"


def program_of(source, pages):
    """A program that uses every public function, constructor, destructor and type with virtual functions."""
    includes = "\n".join(f'#include "tutti/{path.name}"' for path in sorted((source / "include/tutti").glob("*.h")))
    parts, seen = [HEAD.format(includes=includes)], set()
    for compound in (compound for page in pages for compound in page.iter("compounddef")):
        is_class = compound.get("kind") in ("class", "struct")
        owner = compound.findtext("compoundname") if is_class else ""
        if is_class and owner.startswith("tutti::"):
            parts.append(f"const std::type_info* type{len(parts)} = type_of<{owner}>();\n")
        for function in compound.iter("memberdef"):
            if function.get("kind") == "function" and function.get("prot") == "public" and function.get("id") not in seen:
                seen.add(function.get("id"))
                parts.append(use_of(function, len(parts), owner))
    return "".join(parts) + "}\n"


def names(nm_lines):
    """Names of ours, without the version behind the @."""
    found = {line.split()[-1].split("@")[0] for line in nm_lines.splitlines() if line.strip()}
    return {name for name in found if OURS.match(name)}


def declared(source, compiler):
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        program = folder / "program.cc"
        program.write_text(program_of(source, read_headers(source, folder)))
        run(compiler, "-std=c++20", "-O0", f"-I{source}/include", "-c", str(program), "-o", str(folder / "program.o"))
        needed = names(run("nm", "--undefined-only", str(folder / "program.o")))
    for kind in "SV":  # the name and the table of virtual functions come with a type
        needed |= {name.replace("_ZTI", "_ZT" + kind, 1) for name in needed if name.startswith("_ZTI")}
    return readable(needed)


def exported(library):
    """All that it exports, ours or not."""
    lines = run("nm", "--dynamic", "--defined-only", library).splitlines()
    return readable({line.split()[-1].split("@")[0] for line in lines if " A " not in line})  # A: the version itself


def readable(mangled):
    return set(run("c++filt", stdin="\n".join(mangled)).splitlines())


def main():
    source, library, compiler = Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3]
    if shutil.which("doxygen") is None:
        print("skipped: there is no doxygen")
        sys.exit(77)
    listed_in = source / "src/exports.txt"
    has = exported(library)
    if sys.argv[4:] == ["--write"]:
        listed_in.write_text("".join(name + "\n" for name in sorted(has)))
    lines = listed_in.read_text().splitlines()
    listed, headers = set(lines), declared(source, compiler)
    wrong = [f"exported, and no public header declares it: {name}" for name in sorted(has - headers)]
    wrong += [f"declared, and not exported (no TUTTI_API?): {name}" for name in sorted(headers - has)]
    wrong += [f"exported, and src/exports.txt does not list it: {name}" for name in sorted(has - listed)]
    wrong += [f"src/exports.txt lists it, and it is not exported: {name}" for name in sorted(listed - has)]
    if lines != sorted(listed):
        wrong.append("src/exports.txt is not sorted, or has a name twice")
    print("\n".join(wrong + [f"{len(has)} names"]))
    if has != listed:
        print(f"If that is meant: {' '.join(sys.argv)} --write, and docs/guide/link.md says when the SONAME changes.")
    sys.exit(bool(wrong))


main()
