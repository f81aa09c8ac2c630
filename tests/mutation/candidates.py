# SPDX-License-Identifier: BSD-3-Clause
"""Finds the positions in C++ sources where a small fault can be put in, by Clang's syntax tree."""
import dataclasses
import os
import pathlib
import re
import shlex

from clang import cindex
from clang.cindex import CursorKind, TypeKind

OTHER_OPERATOR = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&",
    "+": "-", "-": "+", "*": "+", "/": "*", "%": "+", "&": "|", "|": "&", "<<": ">>", ">>": "<<",
}
INTEGERS = {TypeKind.INT, TypeKind.UINT, TypeKind.LONG, TypeKind.ULONG, TypeKind.LONGLONG, TypeKind.ULONGLONG,
            TypeKind.SHORT, TypeKind.USHORT, TypeKind.CHAR_S, TypeKind.SCHAR, TypeKind.UCHAR}
NUMBERS = INTEGERS | {TypeKind.FLOAT, TypeKind.DOUBLE}
# What is computed while compiling can't be switched when the program runs.
COMPILED = {CursorKind.STATIC_ASSERT, CursorKind.ENUM_CONSTANT_DECL, CursorKind.TEMPLATE_NON_TYPE_PARAMETER,
            CursorKind.FRIEND_DECL} | {kind for kind in (getattr(CursorKind, "CONCEPT_DECL", None),) if kind}
MACRO_CALL = re.compile(rb"[A-Z_]{4,}\(")
BRANCHES = {CursorKind.IF_STMT, CursorKind.WHILE_STMT, CursorKind.FOR_STMT, CursorKind.DO_STMT, CursorKind.CXX_FOR_RANGE_STMT}


@dataclasses.dataclass(frozen=True)
class Candidate:
    """One small fault: the characters [begin, end) of `path`, and the text with the switch `@` that takes their place."""
    path: str
    begin: int
    end: int
    line: int
    what: str
    text: str


def source_commands(build):
    """The compiler's arguments for every source that `build` compiles, also for those compiled together in one unit."""
    import json
    commands = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        arguments = shlex.split(entry["command"])[1:]
        where = arguments.index("-c")
        arguments = [each for i, each in enumerate(arguments) if i not in (where, where + 1)]
        unit = pathlib.Path(entry["file"])
        sources = [str(unit)]
        if "Unity" in unit.parts:
            sources = re.findall(r'^#include "(.*)"', unit.read_text(), re.MULTILINE)
        for source in sources:
            commands.setdefault(os.path.realpath(source), (entry["directory"], arguments))
    return commands


class Reader:
    """Collects candidates of the files `wanted` (real paths) from units that include them."""

    def __init__(self, wanted):
        self.wanted = set(wanted)
        self.found = {}
        self.texts = {path: pathlib.Path(path).read_bytes() for path in wanted}
        self.seen = set()
        self.index = cindex.Index.create()

    def read(self, source, directory, arguments):
        here = os.getcwd()
        os.chdir(directory)
        try:
            unit = self.index.parse(source, args=arguments)
        finally:
            os.chdir(here)
        fatal = [each.spelling for each in unit.diagnostics if each.severity >= cindex.Diagnostic.Error]
        if fatal:
            raise SystemExit(f"mutate: {source} can't be read: {fatal[0]}")
        before = set(self.seen)
        for cursor in unit.cursor.get_children():
            path = self.path_of(cursor)
            if path in self.wanted and path not in before:
                self.seen.add(path)
                self.walk(cursor, path, None, False)

    def path_of(self, cursor):
        file = cursor.extent.start.file
        return os.path.realpath(file.name) if file else None

    def walk(self, cursor, path, parent, in_function):
        if cursor.kind in COMPILED or self.path_of(cursor) != path:
            return
        if cursor.kind in (CursorKind.VAR_DECL, CursorKind.FIELD_DECL) and "constexpr" in self.head(cursor, path):
            return
        if cursor.kind.is_declaration() and re.search(r"\b(constexpr|consteval)\b", self.head(cursor, path)):
            return
        in_function = in_function or cursor.kind == CursorKind.COMPOUND_STMT
        if in_function:
            self.note(cursor, path, parent)
        children = list(cursor.get_children())
        if cursor.kind == CursorKind.IF_STMT and re.match(rb"if\s+constexpr", self.text(cursor, path)):
            children = children[1:]
        for child in children:
            self.walk(child, path, cursor, in_function)

    def head(self, cursor, path):
        return self.text(cursor, path).split(b"{", 1)[0].split(b"=", 1)[0].decode(errors="replace")

    def text(self, cursor, path):
        return self.texts[path][cursor.extent.start.offset:cursor.extent.end.offset]

    def add(self, path, begin, end, line, what, text):
        key = (path, begin, end, what)
        source = self.texts[path][begin:end]
        inside_macro = MACRO_CALL.match(source) and not what.endswith("(left out)")
        if b"\n" not in source and not inside_macro:
            self.found.setdefault(key, Candidate(path, begin, end, line, what, text))

    def note(self, cursor, path, parent):
        begin, end, line = cursor.extent.start.offset, cursor.extent.end.offset, cursor.extent.start.line
        source = self.texts[path]
        whole = source[begin:end].decode(errors="replace")
        if not whole or "#" in whole[:1] or self.from_macro(cursor):
            return
        if cursor.kind == CursorKind.BINARY_OPERATOR:
            self.note_operator(cursor, path, whole)
        elif cursor.kind == CursorKind.UNARY_OPERATOR and whole.startswith("!"):
            self.add(path, begin, end, line, f"{whole}  ->  {whole[1:]}", f"(@ != ({whole}))")
        elif cursor.kind == CursorKind.INTEGER_LITERAL and parent.kind != CursorKind.CASE_STMT:
            if parent.type.kind in NUMBERS or parent.kind in (CursorKind.BINARY_OPERATOR, CursorKind.RETURN_STMT):
                self.add(path, begin, end, line, f"{whole}  ->  {whole} + 1", f"(@ ? {whole} + 1 : {whole})")
        elif cursor.kind == CursorKind.CXX_BOOL_LITERAL_EXPR:
            self.add(path, begin, end, line, f"{whole}  ->  !{whole}", f"(@ != {whole})")
        elif cursor.kind == CursorKind.RETURN_STMT:
            self.note_return(cursor, path, whole, parent)
        elif cursor.kind in (CursorKind.BREAK_STMT, CursorKind.CONTINUE_STMT) and parent.kind in BRANCHES | {CursorKind.COMPOUND_STMT}:
            if not (parent.kind == CursorKind.COMPOUND_STMT and cursor.kind == CursorKind.BREAK_STMT):
                other = "break" if whole == "continue" else "continue"
                self.add_statement(path, begin, end, line, f"{whole}  ->  {other}", f"if (@) {other}; else {whole};")
        if cursor.kind in (CursorKind.IF_STMT, CursorKind.WHILE_STMT, CursorKind.CONDITIONAL_OPERATOR):
            self.note_condition(cursor, path)
        if parent is not None and parent.kind in BRANCHES | {CursorKind.COMPOUND_STMT}:
            self.note_statement(cursor, path, parent, whole)

    def from_macro(self, cursor):
        start, where = cursor.extent.start, cursor.location
        return start.file is None or where.file is None

    def note_operator(self, cursor, path, whole):
        children = list(cursor.get_children())
        if len(children) != 2:
            return
        source = self.texts[path]
        begin, end = cursor.extent.start.offset, cursor.extent.end.offset
        left_end, right = children[0].extent.end.offset, children[1].extent.start.offset
        between = source[left_end:right].decode(errors="replace").strip()
        if between not in OTHER_OPERATOR:
            return
        numbers = all(each.type.get_canonical().kind in NUMBERS for each in children)
        if between in "+-*/%&|<<>>" and not numbers:
            return
        other = OTHER_OPERATOR[between]
        left, after = source[begin:left_end].decode(), source[right:end].decode()
        text = f"(@ ? ({left} {other} {after}) : ({left} {between} {after}))"
        self.add(path, begin, end, cursor.extent.start.line, f"{whole}  ->  {left} {other} {after}", text)

    def note_condition(self, cursor, path):
        children = list(cursor.get_children())
        if not children or (cursor.kind == CursorKind.IF_STMT and
                            re.match(rb"if\s+constexpr", self.text(cursor, path))):
            return
        condition = children[0]
        if cursor.kind != CursorKind.CONDITIONAL_OPERATOR and not condition.kind.is_expression():
            return
        if len(children) > 1 and children[1].kind.is_expression() and cursor.kind == CursorKind.IF_STMT and \
                children[0].kind == CursorKind.DECL_STMT:
            return
        begin, end = condition.extent.start.offset, condition.extent.end.offset
        whole = self.texts[path][begin:end].decode(errors="replace")
        self.add(path, begin, end, condition.extent.start.line, f"condition {whole}  ->  !({whole})", f"(@ != static_cast<bool>({whole}))")

    def note_return(self, cursor, path, whole, parent):
        begin, end, line = cursor.extent.start.offset, cursor.extent.end.offset, cursor.extent.start.line
        value = next(iter(cursor.get_children()), None)
        if value is None:
            if parent.kind in BRANCHES or parent.kind == CursorKind.COMPOUND_STMT:
                self.add_statement(path, begin, end, line, "return;  ->  (left out)", "if (!@) return;")
            return
        kind = value.type.get_canonical().kind
        inner_begin, inner_end = value.extent.start.offset, value.extent.end.offset
        inner = self.texts[path][inner_begin:inner_end].decode(errors="replace")
        if kind == TypeKind.BOOL and inner not in ("true", "false"):
            self.add(path, inner_begin, inner_end, line, f"return {inner}  ->  return !({inner})", f"(@ != ({inner}))")
        elif kind in INTEGERS:
            self.add(path, inner_begin, inner_end, line, f"return {inner}  ->  return {inner} + 1", f"(@ ? ({inner}) + 1 : ({inner}))")

    def note_statement(self, cursor, path, parent, whole):
        if not cursor.kind.is_expression() and cursor.kind not in (CursorKind.CALL_EXPR, CursorKind.UNEXPOSED_EXPR):
            return
        if parent.kind in BRANCHES and self.is_condition(cursor, parent):
            return
        begin, end = cursor.extent.start.offset, cursor.extent.end.offset
        changed = {"++": "--", "--": "++"}
        for operator, other in changed.items():
            if whole.startswith(operator) and cursor.kind == CursorKind.UNARY_OPERATOR:
                self.add_statement(path, begin, end, cursor.extent.start.line, f"{whole}  ->  {other}{whole[2:]}",
                                   f"if (@) {other}{whole[2:]}; else {whole};")
        self.add_statement(path, begin, end, cursor.extent.start.line, f"{whole};  ->  (left out)", f"if (!@) {{ {whole}; }}")

    def is_condition(self, cursor, parent):
        children = list(parent.get_children())
        if parent.kind == CursorKind.DO_STMT:
            return cursor == children[-1]
        return cursor != children[-1] and not (parent.kind == CursorKind.IF_STMT and cursor != children[0])

    def add_statement(self, path, begin, end, line, what, text):
        source = self.texts[path]
        after = re.match(rb"\s*;", source[end:end + 40])
        if after:
            self.add(path, begin, end + after.end(), line, what, f"{{ {text} }}")


def collect(build, wanted):
    """Every candidate of the files `wanted`, in the order of their positions. Headers are read in a unit that includes them."""
    commands = source_commands(build)
    reader = Reader(wanted)
    units = [path for path in wanted if path in commands]
    folders = {os.path.dirname(path) for path in wanted}
    others = [path for path in sorted(commands) if path not in units and
              (os.path.dirname(path) in folders or os.path.dirname(os.path.dirname(path)) in folders)]
    for source in units + others + [path for path in sorted(commands) if path not in set(units + others)]:
        if reader.seen >= reader.wanted:
            break
        if source not in units and not any(os.path.basename(path).encode() in pathlib.Path(source).read_bytes()
                                           for path in reader.wanted - reader.seen):
            continue
        reader.read(source, *commands[source])
    unread = sorted(reader.wanted - reader.seen)
    return sorted(reader.found.values(), key=lambda each: (each.path, each.begin, each.end)), unread
