#!/usr/bin/python3
"""One name, one definition: one_definition.py SOURCE_DIR

The linker takes two classes of one qualified name for one class, and calls the functions of either for both; no
compiler says so where no file includes both. So no two files may define the same class, enum, inline variable, inline
function or function template, and no file may define a function that another has inline. What lies in a namespace
without a name, or in a function, belongs to its file alone.

What Highway's headers define depends on the instruction sets that they are told of. So they are told in one place:
memory/targets.h comes before them.
"""
import sys
from pathlib import Path

sys.dont_write_bytecode = True
from cpp import class_in, past, tokens_of, without_templates

FOLDERS = ("include", "src", "tools", "tests", "bench", "examples")
SUFFIXES = (".h", ".cc", ".cu", ".cuh")


def inline_in(tokens):
    """The inline variable, or the inline function or template with its parameters, that the tokens declare, or None."""
    is_template = tokens[:1] == ["template"]
    rest = without_templates(tokens)
    if rest[:1] == ["concept"]:
        return rest[1]
    if "static" in rest or "friend" in rest or "using" in rest:
        return None
    open_at = rest.index("(") if "(" in rest else len(rest)
    stop = min((rest.index(mark) for mark in ("=", "[") if mark in rest), default=len(rest))
    if "operator" in rest[:open_at] or (open_at < stop and open_at > 0):
        if not is_template and "inline" not in rest and "constexpr" not in rest:
            return None
        start = rest.index("operator") if "operator" in rest[:open_at] else open_at - 1
        return "".join(rest[start:open_at]) + " ".join(rest[open_at:past(rest, open_at, "(", ")")])
    if "inline" not in rest[:stop]:
        return None
    start = next(i for i in range(stop - 1, -1, -1) if past(rest, i, "<", ">") == stop or rest[stop - 1] != ">")
    return "".join(rest[start - (rest[start] == "<"):stop])


def plain_in(tokens):
    """The function, with its parameters, whose body the tokens begin, and which is not inline; or None."""
    if "(" not in tokens or any(word in tokens for word in ("static", "inline", "constexpr", "template", "=", "operator")):
        return None
    open_at = tokens.index("(")
    if open_at < 2 or tokens[open_at - 2] in ("::", "~"):  # a macro, a constructor, or a member defined outside its class
        return None
    return tokens[open_at - 1] + " ".join(tokens[open_at:past(tokens, open_at, "(", ")")])


def names_of(text, where):
    """Every qualified name that is defined for other files too: what may be in many files, and plain functions."""
    scopes, statement, found, plain = [], [], set(), set()  # a scope: its name, or None where its file owns what is in it
    for token in tokens_of(text):
        outer = None if None in scopes else "::".join(scope for scope in scopes if scope)
        if token == "}":
            if not scopes:
                sys.exit(f"{where}: a }} too many, as {sys.argv[0]} reads it")
            scopes.pop()
            statement = []
        elif token in ("{", ";"):
            is_namespace = "namespace" in statement and "using" not in statement
            name = class_in(statement) if token == "{" and not is_namespace else None
            if token == "{":
                at = statement.index("namespace") if is_namespace else 0
                scopes.append(("".join(statement[at + 1:]) or None) if is_namespace
                              else "" if statement[:1] == ["extern"] and len(statement) == 2 else name)
            if name is None and not is_namespace:
                name = inline_in(statement)
            if name is not None and outer is not None:
                found.add((outer + "::" if outer else "") + name)
            function = plain_in(statement) if token == "{" and name is None and not is_namespace else None
            if function is not None and outer is not None:
                plain.add((outer + "::" if outer else "") + function)
            statement = []
        else:
            statement.append(token)
    if scopes:
        sys.exit(f"{where}: a {{ too many, as {sys.argv[0]} reads it")
    return found, plain


def main():
    root = Path(sys.argv[1])
    files = sorted(path for folder in FOLDERS for path in (root / folder).rglob("*") if path.suffix in SUFFIXES)
    defined, functions, wrong = {}, {}, False
    for path in files:
        text = path.read_text()
        found, plain = names_of(text, path)
        for name in found:
            defined.setdefault(name, []).append(str(path.relative_to(root)))
        for name in plain:
            functions.setdefault(name, []).append(str(path.relative_to(root)))
        at_highway = text.find("#include <hwy/")
        if at_highway >= 0 and path.name != "kernel-inl.h" and \
                not 0 <= text.find('#include "memory/targets.h"') < at_highway:
            print(f"{path.relative_to(root)} includes Highway without memory/targets.h before it")
            wrong = True
    for name in defined.keys() & functions.keys():
        defined[name] += functions[name]
    for name, places in sorted(defined.items()):
        if len(places) > 1:
            print(f"{name} is defined in {' and '.join(places)}: rename one, or put it into a namespace without a name")
            wrong = True
    print(f"{len(defined)} names in {len(files)} files")
    sys.exit(wrong)


main()
