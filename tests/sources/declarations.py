"""The functions that a public header declares, each with the docstrings that belong to it.

It reads our own headers, which clang-format has formatted: a docstring stands on lines of `///` above a declaration, or
begins with `///<` behind it. Private members, what lies in a namespace `internal`, and functions that are deleted are
left out.
"""
import re
from dataclasses import dataclass, field

from cpp import class_in, past, tokens_of, without_templates


@dataclass
class Function:
    file: str
    line: int
    scope: str    # its class, or ""
    name: str
    result: str   # its type as text
    parameters: list = field(default_factory=list)  # (type, name)
    is_const: bool = False
    is_special: bool = False  # a constructor, a destructor, an operator
    doc: str = ""
    group: str = ""  # of its @name group

    def place(self):
        """Where it is, for a person."""
        return f"{self.file}:{self.line}: {self.scope + '::' if self.scope else ''}{self.name}()"


def joined(tokens):
    """The tokens as the text of a type: `const void *`, `std::span<T>`."""
    text = " ".join(tokens)
    return re.sub(r" ?(::|<|>|,) ?", lambda match: match[1] + (" " if match[1] == "," else ""), text).strip()


def parameters_in(tokens):
    """[(type, name)] of what stands between the parentheses."""
    found, start, depth = [], 0, 0
    for i, token in enumerate(tokens + [","]):
        depth += (token in "(<{[") - (token in ")>}]")
        if token != "," or depth > 0:
            continue
        one = tokens[start:i]
        start = i + 1
        one = one[:one.index("=")] if "=" in one else one
        if one and one != ["void"]:
            has_name = len(one) > 1 and re.match(r"[A-Za-z_]\w*$", one[-1]) and one[-2] != "::"
            found.append((joined(one[:-1]), one[-1]) if has_name else (joined(one), ""))
    return found


def function_of(tokens, file, line, scope):
    """The function that the tokens declare; None: they declare something else, or it is deleted."""
    tokens = without_templates(tokens)
    if tokens[:1] == ["[["]:
        tokens = tokens[tokens.index("]]") + 1:]
    if tokens[0] in ("typedef", "using", "friend", "static_assert", "class", "struct", "enum") or "(" not in tokens:
        return None
    at = tokens.index("(", tokens.index("operator") + 2) if "operator" in tokens else tokens.index("(")
    if tokens[at + 1] == "*" or "{" in tokens[:at] or ("=" in tokens[:at] and "operator" not in tokens):
        return None  # a pointer to a function; a variable
    end = past(tokens, at, "(", ")")
    if tokens[end:end + 3] == ["=", "delete", ";"]:
        return None
    head = [token for token in tokens[:at] if token not in ("static", "virtual", "explicit", "inline", "constexpr")]
    plain = scope.rsplit("::", 1)[-1]
    if "operator" in head:
        name = "".join(head[head.index("operator"):])
    else:
        name = ("~" if head[-2:-1] == ["~"] else "") + head[-1]
    return Function(file, line, scope, name, joined(head[:-1]), parameters_in(tokens[at + 1:end - 1]),
                    is_const="const" in tokens[end:],
                    is_special="operator" in head or (bool(plain) and name.lstrip("~") == plain))


class Reader:
    """Goes through the lines of a header once."""

    def __init__(self, file, text):
        self.file, self.lines = file, text.splitlines()
        self.functions, self.types, self.file_doc = [], {}, ""
        self.scopes = []   # (name of a class or "", is public)
        self.group = None  # [its text, the docstring of its last function]

    def scope(self):
        return "::".join(name for name, _ in self.scopes if name)

    def read(self):
        at, doc = 0, []
        while at < len(self.lines):
            line = self.lines[at].strip()
            if line.startswith("///"):
                doc.append(line[3:].strip())
                at += 1
            elif line.startswith(("#", "//")) or not line:
                while line.startswith("#") and self.lines[at].endswith("\\"):
                    at += 1
                if doc:
                    self.keep_alone("\n".join(doc), line)
                doc = []
                at += 1
            else:
                at = self.declaration(at, self.marks("\n".join(doc)))
                doc = []
        return self

    def marks(self, text):
        """The docstring, or "" where it opens or closes a group."""
        match = re.match(r"@name [^\n]*\n?", text)
        if match:
            of_group, _, rest = text[match.end():].partition("@{")
            self.group = [of_group, ""]
            return rest.strip()
        if "@}" in text:
            self.group = None
            return ""
        return text

    def keep_alone(self, text, next_line):
        """A comment that no declaration follows: the file's, a group's, the end of one, or a macro's."""
        if text.startswith("@file"):
            self.file_doc = text
        elif self.marks(text) and self.group is not None and not next_line.startswith("#"):
            self.group[0] += "\n\n" + text

    def declaration(self, at, doc):
        """Reads what begins at the line; returns the line behind it."""
        first, code, behind = at, "", []
        while True:
            line, _, comment = self.lines[at].partition("///<")
            if comment:
                behind.append(comment.strip())
            code += line.partition("// ")[0] + "\n"
            at += 1
            if not re.sub(r"\b(public|private|protected):", "", code).strip():
                break
            tokens = tokens_of(code)
            if self.is_whole(tokens):
                break
        return self.declared(tokens_of(code), doc or "\n".join(behind), first, at)

    @staticmethod
    def is_whole(tokens):
        opens = [token for token in tokens if token in "({"]
        if tokens[-1] == "}" or (tokens[-1] == ";" and tokens.count("(") == tokens.count(")")):
            return tokens.count("{") <= tokens.count("}")  # also of }; and of what closes a scope
        return tokens[-1] == "{" and "(" not in opens[:-1] and opened_scope(tokens) is not None and "enum" not in tokens

    def declared(self, tokens, doc, first, at):
        while tokens[:1] and tokens[0] in ("public", "private", "protected") and tokens[1] == ":":
            self.scopes[-1] = (self.scopes[-1][0], tokens[0] == "public")
            tokens = tokens[2:]
        if not tokens:
            return at
        if tokens[-1] == "{":
            self.open(tokens, doc)
        elif tokens[0] == "}":
            self.close(tokens)
        elif all(is_public for _, is_public in self.scopes):
            self.member(tokens, doc, first + 1)
        return at

    def open(self, tokens, doc):
        name = opened_scope(tokens)
        self.scopes.append((name, "class" not in tokens and "internal" not in tokens))
        if name:
            self.types[self.scope()] = doc

    def close(self, tokens):
        if len(tokens) > 2:  # } tutti_config_t;
            self.types[tokens[1]] = self.types[self.scope()]
        self.scopes.pop()

    def member(self, tokens, doc, line):
        if tokens[0] in ("typedef", "using"):
            self.types.setdefault(tokens[1] if tokens[0] == "using" else tokens[-2], doc)
        function = function_of(tokens, self.file, line, self.scope())
        if function is None:
            return
        function.doc = doc
        if self.group is not None:
            function.doc = self.group[1] = doc or self.group[1]
            function.group = self.group[0]
        self.functions.append(function)


def opened_scope(tokens):
    """The name of the class whose body begins; "" for a namespace and for extern "C"; None for anything else."""
    if tokens[0] in ("namespace", "extern"):
        return ""
    if tokens[0] in ("class", "struct", "enum", "template", "typedef"):
        return class_in([token for token in tokens[:-1] if token != "typedef"]) or None
    return None


def functions_in(file, text):
    """(functions, {type: docstring}, docstring of the file)"""
    reader = Reader(file, text).read()
    return reader.functions, reader.types, reader.file_doc
