"""The classes of a header, and how many methods and data members each has.

What counts is what a class declares itself. A method: each overload, constructor and operator, static or not; not one
that is defaulted or deleted, as there is nothing to read. A data member: what every object has; not a static one.
Members of an unnamed union or struct are those of the class around it. Of #if and #else, both count.
"""
import re

from cpp import class_in, past, tokens_of

OPENING = {"(": ")", "[": "]", "{": "}"}


def past_angles(tokens, at):
    """The index behind the > that closes tokens[at]; at + 1 where the < compares or shifts."""
    i = at + 1
    while i < len(tokens) and tokens[i] not in (";", "{", ")", "]", "}"):
        if tokens[i] == ">":
            return i + 1
        i = past_angles(tokens, i) if tokens[i] == "<" else past_group(tokens, i) if tokens[i] in "([" else i + 1
    return at + 1


def past_group(tokens, at):
    """The index behind the group of brackets that begins at tokens[at], or behind that token alone."""
    if tokens[at] == "<":
        return past_angles(tokens, at)
    return past(tokens, at, tokens[at], OPENING[tokens[at]]) if tokens[at] in OPENING else at + 1


def declaration_at(tokens, at):
    """A declaration in a class, from tokens[at]: without groups' contents, as a list, and the index behind it.

    A group of brackets is its opening bracket alone: `int f(int a = 3) {...}` is int f ( {.
    """
    outer, i, initialised = [], at, False
    while i < len(tokens):
        token = tokens[i]
        if token == ";":
            return outer, i + 1
        if token == ":" and "(" in outer and not initialised:  # X(int a) : a_(a), b_{a} {...}
            i += 1
            while True:
                while tokens[i] not in ("(", "{"):
                    i = past_group(tokens, i)
                i = past_group(tokens, i)
                if tokens[i] == ".":  # ...
                    i += 3
                if tokens[i] != ",":
                    break
                i += 1
            outer.append(":")
            continue
        outer.append(token)
        initialised |= token == "="
        i = past_group(tokens, i)
        if token == "{" and is_function(outer):
            return outer, i
    return outer, i


def is_function(outer):
    """Whether the declaration is one of a function: parameters come before any initialiser."""
    if "operator" in outer:
        return True
    ends = [outer.index(mark) for mark in ("=", "{") if mark in outer]
    return "(" in outer[:min(ends, default=len(outer))]


def without_specifiers(tokens, at):
    """The index behind what comes before the type: access, attributes, template heads, alignment."""
    while at < len(tokens):
        if tokens[at] in ("public", "private", "protected") and tokens[at + 1] == ":":
            at += 2
        elif tokens[at:at + 2] == ["[", "["]:
            at = past_group(tokens, at)
        elif tokens[at] == "template":
            at = past_group(tokens, at + 1)
        elif tokens[at:at + 2] == ["requires", "requires"]:  # (T t) {…}
            at = past_group(tokens, tokens.index("{", at))
        elif tokens[at] in ("alignas", "explicit") and tokens[at + 1] == "(":
            at = past_group(tokens, at + 1)
        else:
            return at
    return at


def declarators(outer):
    """How many variables the declaration declares."""
    return 1 + sum(token == "," for token in outer)


def size_of(tokens, begin, end):
    """(methods, data members) of the class whose body is tokens[begin, end)."""
    tokens = tokens[:end]
    methods = members = 0
    at = begin
    while True:
        at = without_specifiers(tokens, at)
        if at >= end:
            return methods, members
        if tokens[at] == ";":
            at += 1
            continue
        head_end = class_head(tokens, at)
        if head_end is not None:
            body_end = past(tokens, head_end, "{", "}")
            behind, next_at = declaration_at(tokens, body_end)
            if behind:
                members += declarators(behind)
            elif head_end == at + 1:  # no name
                inner = size_of(tokens, head_end + 1, body_end - 1)
                methods, members = methods + inner[0], members + inner[1]
            at = next_at
            continue
        first = tokens[at]
        outer, next_at = declaration_at(tokens, past_group(tokens, at + 1) if first == "decltype" else at)
        is_other = first in ("using", "typedef", "friend", "static_assert", "enum", "class", "struct", "union")
        if first in ("class", "struct", "union") and len(outer) > 2:
            is_other = False  # struct stat seen_;
        if is_pointer_to_function(tokens, at, next_at):
            members += first != "static"
        elif is_other:
            pass
        elif is_function(outer):
            methods += outer[-2:] not in (["=", "default"], ["=", "delete"])
        elif "static" not in outer:
            members += declarators(outer)
        at = next_at


def is_pointer_to_function(tokens, at, end):
    """`void (*call_)(int)`, `int (Class::*call_)(int)`"""
    i = at
    while i < end and tokens[i] not in ("(", "=", "{", "operator"):
        i = past_group(tokens, i)
    if i >= end or tokens[i] != "(":
        return False
    inner = tokens[i + 1:past_group(tokens, i) - 1]
    return re.match(r"(\w+ :: )*\* (const )?\w+$", " ".join(inner)) is not None and tokens[i + len(inner) + 2] == "("


def class_head(tokens, at):
    """The index of the { of the class whose definition begins at tokens[at], or None."""
    if tokens[at] not in ("class", "struct", "union"):
        return None
    i = at + 1
    while i < len(tokens) and tokens[i] not in (";", "{", "(", ")", "=", ",", ">", "*", "&"):
        if tokens[i] == "alignas":
            i += 1
        elif tokens[i] == ":":  # bases
            while i < len(tokens) and tokens[i] not in (";", "{", ")"):
                i = past_group(tokens, i)
            break
        i = past_group(tokens, i)
    if i >= len(tokens) or tokens[i] != "{":
        return None
    return i if i == at + 1 or class_in(tokens[at:i]) else None


def classes_in(text):
    """{name: (methods, data members)} of every class in the text, nested ones too, by names like Outer::Inner."""
    tokens, found, enclosing = tokens_of(text), {}, []
    for at in range(len(tokens)):
        while enclosing and at >= enclosing[-1][1]:
            enclosing.pop()
        if at > 0 and tokens[at - 1] in ("enum", "friend"):
            continue
        brace = class_head(tokens, at)
        if brace is None or brace == at + 1:
            continue  # an unnamed one counts as part of the one around it
        end = past(tokens, brace, "{", "}")
        enclosing.append((class_in(tokens[at:brace]), end))
        found["::".join(name for name, _ in enclosing)] = size_of(tokens, brace + 1, end - 1)
    return found
