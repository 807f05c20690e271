#!/usr/bin/python3
"""Each public function says what its callers must know: docstrings.py SOURCE_DIR

OWED says which statements a kind of function owes, STATEMENTS how each is recognised. They are looked for in:

- the docstring of the function: above it, or behind it. In a @name group, a function that has none shares that of the
  function before it.
- the text of its @name group: behind @name, and paragraphs that stand alone in the group.
- the docstrings that these refer to: "as f()"; "f() says"; "the same calls", which of start_f() is f(); "the calls of
  the same names", which of f_v() is f(), but has other shapes. What is referred to must exist.
- paragraphs with a title in TITLES, as **Threads.** is one, in the docstring of the function's class, of its file, and
  of the handles that it takes. A file may say that paragraphs of a class hold for what takes a tutti_comm_t: "for the
  class C, in these paragraphs: A, B."

The functions that src/exports.txt lists must be among those that are checked.
"""
import re
import sys
from pathlib import Path

sys.dont_write_bytecode = True
from declarations import functions_in

STATEMENTS = {
    "whether it blocks": r"(?<!must not )\b[Bb]locks?\b|\breturns? at once\b",
    "threads": r"\b[Tt]hreads?\b",
    "errors": r"\bError\{|\bTUTTI_[A-Z_]+|\b([Tt]hrows|[Gg]ives the error)\b|always succeeds",
    "the state after an error": r"stays? usable|is final|(is|become) null|\bnot made\b|no call"
                                r"|the same (again|error|result)|nothing has changed|[Tt]hrows nothing|always succeeds|goes on|ends the join",
}
TITLES = {
    "Threads": ("threads",),
    "Shapes": ("units",),
    "Blocking": ("whether it blocks",),
    "Errors": ("errors", "the state after an error"),
    "Errors before the call": ("errors", "the state after an error"),
    "Errors during the call": ("errors", "the state after an error"),
    "Results": ("errors", "the state after an error"),
}
OWED = {
    "call": ("shapes", "units", "aliasing", *STATEMENTS),  # moves data: it has options or a stream
    "action": ("shapes", "units", *STATEMENTS),            # anything else that changes something or may fail
    "query": ("shapes", "units"),                          # only says something
    "special": (),                                         # a constructor, a destructor, an operator
}
BUFFER = re.compile(r"(const void|void) ?\*$|(Const)?Buffer$|std::span<")
REFERENCES = (r"\b[Aa]s ((?:\w+::)*\w+)\(\)", r"\b((?:\w+::)*\w+)\(\)(?: in \S+)? says")


def kind_of(function, doc_of_class):
    if function.is_special:
        return "special"
    if any(name == "stream" or "CallOptions" in type_ for type_, name in function.parameters):
        return "call"
    is_value = not function.scope or "A value" in doc_of_class
    returns = function.result not in ("void", "tutti_result_t")
    return "query" if function.is_const or (is_value and returns) else "action"


def paragraphs_in(doc):
    """{title: text} of the paragraphs that begin with **Title.**"""
    matches = (re.match(r"\*\*([^*.]+)\.?\*\*", text.strip()) for text in re.split(r"\n\s*\n", doc))
    return {match[1]: " ".join(match.string.split()) for match in matches if match}


def is_shown(text, type_, name):
    """Whether the text says which elements of a buffer or an array are used, or what is written behind a pointer."""
    if "UnequalRows" in type_:
        return re.search(r"\brows\b", text)
    if type_.startswith("const size_t *"):  # counts[r], of sendcounts too
        return any(name.endswith(array) for array in re.findall(r"\b(\w+)\[r\]", text))
    if name in ("stream", "user") or not (BUFFER.match(type_) or re.match(r"(?!const )\w+ \*", type_)):
        return True
    return re.search(rf"\b{name}\[[^,]*, [^=]*\)|[Rr]ow \w+ of `?{name}\b|\*{name}\b", text)


def has_unit(text, type_, name):
    """Whether a size or a time has a unit: by its type, by its name, or in the text."""
    if type_ not in ("size_t", "std::size_t", "int64_t") or name.endswith(("_ms", "bytes")):
        return True
    return re.search(rf"\b({name}|{name[-5:]})`? (counts )?elements", text)


class Headers:
    def __init__(self, texts):
        """{name of a header: its text}"""
        self.functions, self.types, self.files, self.wrong = [], {}, {}, []
        for file, text in texts.items():
            functions, types, self.files[file] = functions_in(file, text)
            self.functions += functions
            self.types.update(types)

    def check(self):
        """What is wrong, a line each."""
        for function in self.functions:
            self.wrong += [f"{function.place()} does not say {what}" for what in self.missing(function)]
        return list(dict.fromkeys(self.wrong))

    def missing(self, function):
        if not function.doc:
            return ["what it does"]
        kind = kind_of(function, self.types.get(function.scope, ""))
        own, inherited = " ".join(self.texts_of(function, [])), self.paragraphs_for(function, kind)
        of_buffers = " ".join(self.texts_of(function, [], has_shapes=True))
        wrong = []
        for statement in OWED[kind]:
            text = " ".join([own, *(text for title, text in inherited if statement in TITLES[title])])
            if statement == "shapes":
                wrong += [f"shapes: of {name}" for type_, name in function.parameters
                          if not is_shown(of_buffers, type_, name)]
            elif statement == "units":
                wrong += [f"units: of {name}" for type_, name in function.parameters if not has_unit(text, type_, name)]
            elif statement == "aliasing":
                buffers = [name for type_, name in function.parameters if BUFFER.match(type_) and name != "stream"]
                if len(buffers) > 1 and not re.search(r"\b(In|Not in) place\b", of_buffers):
                    wrong.append("aliasing")
            elif not re.search(STATEMENTS[statement], text):
                wrong.append(statement)
        return wrong

    def texts_of(self, function, seen, has_shapes=False):
        """The docstring of the function, that of its group, and those that they refer to (of the same shapes only)."""
        seen.append(function)
        texts = [" ".join(text.split()) for text in (function.doc, function.group)]
        for name in self.references_of(function, has_shapes):
            found = [other for other in self.functions if other.name == name.rsplit("::", 1)[-1] and other not in seen
                     and other.doc and (other.scope == function.scope or "::" in name or not other.scope)]
            names = [parameter for _, parameter in function.parameters]
            found.sort(key=lambda other: -sum(parameter in names for _, parameter in other.parameters))  # of overloads
            if found:
                texts += self.texts_of(found[0], seen, has_shapes)
            elif all(other.name != name.rsplit("::", 1)[-1] for other in self.functions):
                self.wrong.append(f"{function.place()} refers to {name}(), which does not exist")
        return texts

    @staticmethod
    def references_of(function, has_shapes):
        text = " ".join((function.doc + " " + function.group).split())
        names = [name for pattern in REFERENCES for name in re.findall(pattern, text)]
        if "The same calls" in text:
            names.append(function.name.replace("start_", ""))
        if "calls of the same names" in text and not has_shapes:
            names.append(function.name.removesuffix("_v"))
        return names

    def paragraphs_for(self, function, kind):
        """[(title, text)] of the paragraphs that hold for the function. That of blocking is of calls alone."""
        takes = [type_ for type_, _ in function.parameters]
        docs = [self.types.get(function.scope, ""), self.files[function.file]]
        docs += [self.types[type_] for type_ in takes if type_.endswith("_t") and type_ in self.types]
        found = [item for doc in docs for item in paragraphs_in(doc).items()]
        listed = re.search(r"class (\w+), in these paragraphs: ([^.]*)\.", " ".join(self.files[function.file].split()))
        if listed:
            others = paragraphs_in(self.types.get(listed[1], ""))
            for title in listed[2].split(", "):
                if title not in others:
                    self.wrong.append(f"{function.file} refers to the paragraph {title} of {listed[1]}, which does not "
                                      "exist")
                elif "tutti_comm_t" in takes:
                    found.append((title, others[title]))
        return [(title, text) for title, text in found if title in TITLES and (title != "Blocking" or kind == "call")]


def exported(lines):
    """The names of the functions in src/exports.txt, with their classes."""
    names = (re.match(r"(?:tutti::)?((?:\w+::)*~?\w+)(\(|$)", line) for line in lines)
    return {match[1] for match in names if match}


def main():
    source = Path(sys.argv[1])
    headers = Headers({path.name: path.read_text() for path in sorted((source / "include/tutti").glob("*.h"))})
    wrong = headers.check()
    found = {(function.scope + "::" if function.scope else "") + function.name for function in headers.functions}
    wrong += [f"no header declares {name}(), as far as this script can read" for name in
              sorted(exported((source / "src/exports.txt").read_text().splitlines()) - found)]
    print("\n".join(wrong + [f"{len(headers.functions)} functions"]))
    sys.exit(bool(wrong) or not headers.functions)


if __name__ == "__main__":
    main()
