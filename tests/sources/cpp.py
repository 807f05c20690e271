"""Tokens of C++, and the heads of classes among them: what the scripts beside it read sources with."""
import re

TOKENS = re.compile(
    r"""//[^\n]*|/\*.*?\*/|^[ \t]*\#(?:\\\n|[^\n])*      # comments, and the preprocessor's lines
      |R"(?P<mark>[^()\s]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'
      |[A-Za-z_]\w*|\d(?:'?[\w.])*|::|->|\S""",
    re.VERBOSE | re.DOTALL | re.MULTILINE)
CLASS_KEYS = ("class", "struct", "union", "enum")


def tokens_of(text):
    """All but comments, the preprocessor's lines, and the mark of what is exported."""
    found = (match.group() for match in TOKENS.finditer(text))
    return [token for token in found if not token.startswith(("//", "/*")) and not token.lstrip().startswith("#")
            and token != "TUTTI_API"]


def past(tokens, at, left, right):
    """The index behind the bracket that closes the one at tokens[at]."""
    depth = 0
    for i in range(at, len(tokens)):
        depth += (tokens[i] == left) - (tokens[i] == right)
        if depth == 0:
            return i + 1
    return len(tokens)


def without_templates(tokens):
    while tokens[:2] in (["template", "<"], ["requires", "("]):
        tokens = tokens[past(tokens, 1, *("<>" if tokens[1] == "<" else "()")):]
    return tokens


def class_in(tokens):
    """The name of the class or enum whose body follows, or None."""
    tokens = without_templates(tokens)
    at = next((i for i, token in enumerate(tokens) if token in CLASS_KEYS), None)
    if at is None:
        return None
    while at < len(tokens) and tokens[at] in CLASS_KEYS:
        at += 1
    while tokens[at:at + 1] in (["["], ["alignas"]):  # attributes
        at = past(tokens, at, "[", "]") if tokens[at] == "[" else past(tokens, at + 1, "(", ")")
    end = at
    while end < len(tokens) and (tokens[end] == "::" or re.match(r"[A-Za-z_]", tokens[end])) and tokens[end] != "final":
        if end > at and "::" not in (tokens[end], tokens[end - 1]):
            return None  # a variable, or what a function returns
        end += 1
        if tokens[end:end + 1] == ["<"]:
            end = past(tokens, end, "<", ">")
    is_class = end == len(tokens) or tokens[end] in (":", "final")
    return "".join(tokens[at:end]) if is_class and end > at else None
