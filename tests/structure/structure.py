#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks how the sources are laid out: which way includes go, what an installed troupe shows, the letters of promises, and
where the tests of each unit stand.

  structure.py ROOT includes   no include goes up or takes a library that its folder may not use, and units (a header and its source) include
                               each other in no circle
  structure.py ROOT public     the installed headers (cmake/installed_headers.cmake) are what the public ones among them need, all of it and no more
  structure.py ROOT promises   the letters of a header's promises are its own
  structure.py ROOT tests      tests mirror units, or the unit names its tests; a test cites each promise
  structure.py ROOT numbers    numbers are written and read without the program's locale (messages/plain_text.hpp)
  structure.py ROOT links      links between the pages lead to files and headings that are there
  structure.py ROOT classes    no class of actors/ has more than 20 public functions or 12 members; prints the ten largest
  structure.py ROOT columns    lines of product code have at most 128 characters
  structure.py ROOT picture    prints the rooms, their lines, and which rooms each of them includes"""
import collections
import os
import pathlib
import re
import sys

FOLDERS = ["messages", "engine", "devices", "actors", "apps", "python"]  # from the bottom up

# Circles of includes that stay: the include that closes the circle, and the reason why it stays.
EXCEPTIONS = {
    ("messages/messages", "messages/inspect"): "whoever knows a message can send it: CAF looks for `inspect` beside each struct",
    ("engine/graph_task", "engine/graph_task_implementation"): "the second one is the private class of the first",
}

# Units and folders of units (with a slash at the end) without a test of their name or a line that names one, with the reason.
UNTESTED = {
    "apps/examples/": "each program is a test of its own: tests/apps/CMakeLists.txt runs it",
}

# Promises that no test cites, with the reason.
UNCITED = {}

# The largest class of actors/. Structs are data: one with more than two functions is a class.
MOST_FUNCTIONS, MOST_MEMBERS, FUNCTIONS_OF_DATA = 20, 12, 2

# The class that users see. It has a function for each thing that a user asks of a node.
FACE = ("actors/node.hpp", "node")

# Where the headers of a library may be included. A compiler finds those of CAF and OpenSSL in the system for every target.
# (Which targets get libtorch is CMake's to say, and a compiler holds it.)
USERS = {"caf/": ("messages/", "actors/", "apps/"), "openssl/": ("actors/certificates/", "actors/gate/"), "torch/torch.h": ("apps/",)}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:<troupe/([^>]+)>|"([^"]+)")', re.MULTILINE)

# Includes of units that the own library does not link, with the reason.
UNLINKED = {("actors/support/strict_json", "actors/support/texts"): "takes only what the header defines"}

# Headers that only their own folder includes.
PRIVATE = {"messages/wire.hpp", "messages/wire_fields.hpp"}


class Tree:
    """The sources below `root` by their paths, and what each includes of the others."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.texts = {}
        for folder in FOLDERS:
            for path in sorted((self.root / folder).rglob("*.?pp")):
                self.texts[str(path.relative_to(self.root))] = path.read_text()
        if not self.texts:
            sys.exit(f"structure: found no sources below {root}")
        self.includes = {name: self.included(name, text) for name, text in self.texts.items()}
        listed = re.search(r"^set\(rooms ([\w ]+)\)", (self.root / "actors/CMakeLists.txt").read_text(), re.MULTILINE)
        if listed is None:
            sys.exit("structure: actors/CMakeLists.txt names no rooms; expected a line like 'set(rooms support network)'")
        self.rooms = listed[1].split()
        self.public, self.needed = self.installed("public"), self.installed("needed")

    def installed(self, which):
        """The installed headers that programs include, or those that these need."""
        path = self.root / "cmake/installed_headers.cmake"
        text = re.sub(r"#.*", "", path.read_text()) if path.is_file() else ""
        listed = re.search(rf"set\(troupe_{which}_headers([^)]*)\)", text)
        return listed[1].split() if listed else []

    def libraries(self):
        """The library of each unit of actors/ that has a source, and what each library links."""
        lists, of, links = {}, {}, collections.defaultdict(set)
        for room in self.rooms:
            path = self.root / "actors" / room / "sources.cmake"
            for what, name, words in re.findall(r"^(set|add_room)\((\w+)([^)]*)\)", path.read_text() if path.is_file() else "", re.MULTILINE):
                lists[name + "_sources" if what == "add_room" else name] = [f"{room}/{each}" if what == "add_room" else each for each in words.split()]
        for library, words in re.findall(r"^troupe_add_library\((\w+)([^)]*)\)", (self.root / "actors/CMakeLists.txt").read_text(), re.MULTILINE):
            section = None
            for word in words.split():
                if word.isupper():
                    section = word
                elif section == "SOURCES":
                    of.update({"actors/" + unit_of(each): library for each in lists.get(word.strip("${}"), [word])})
                elif section == "DEPENDS":
                    links[library] |= {word.removeprefix("troupe::")} | links[word.removeprefix("troupe::")]
        return of, links

    def included(self, name, text):
        """The paths of what a source includes of troupe, from the root. What is not there is listed too."""
        found = []
        for below_troupe, quoted in INCLUDE.findall(text):
            if quoted.startswith("troupe/"):
                below_troupe, quoted = quoted.removeprefix("troupe/"), ""
            if below_troupe:
                found.append("actors/troupe.hpp" if below_troupe == "troupe.hpp" else below_troupe)
                continue
            beside = [os.path.normpath(os.path.join(each, quoted)) for each in (os.path.dirname(name), "python/native")]
            found.append(next((each for each in beside if (self.root / each).is_file()), quoted))
        return found

    def units(self):
        """What each unit includes of the others, with the file that does."""
        graph = collections.defaultdict(dict)
        for name, those in self.includes.items():
            unit = unit_of(name)
            graph[unit].update({unit_of(each): name for each in those if unit_of(each) != unit and each in self.texts})
        return graph

    def room_of(self, unit):
        """The room of a unit of actors/; the public units, at the top of that folder, are rooms of their own."""
        parts = unit.split("/")
        return parts[1] if parts[0] == "actors" and len(parts) > 2 else None


def unit_of(name):
    return name.rsplit(".", 1)[0]


def circles(graph):
    """Tarjan's strongly connected components of more than one vertex."""
    numbers, lowest, stack, on_stack, found = {}, {}, [], set(), []

    def visit(start):
        work = [(start, iter(graph.get(start, ())))]
        numbers[start] = lowest[start] = len(numbers)
        stack.append(start)
        on_stack.add(start)
        while work:
            vertex, rest = work[-1]
            for other in rest:
                if other not in numbers:
                    numbers[other] = lowest[other] = len(numbers)
                    stack.append(other)
                    on_stack.add(other)
                    work.append((other, iter(graph.get(other, ()))))
                    break
                if other in on_stack:
                    lowest[vertex] = min(lowest[vertex], numbers[other])
            else:
                work.pop()
                if work:
                    lowest[work[-1][0]] = min(lowest[work[-1][0]], lowest[vertex])
                if lowest[vertex] == numbers[vertex]:
                    circle = []
                    while not circle or circle[-1] != vertex:
                        circle.append(stack.pop())
                        on_stack.discard(circle[-1])
                    if len(circle) > 1:
                        found.append(sorted(circle))

    for vertex in list(graph):
        if vertex not in numbers:
            visit(vertex)
    return found


def check_includes(tree):
    problems = []
    graph = tree.units()
    for name, those in tree.includes.items():
        for other in those:
            folder = os.path.dirname(other)
            if other not in tree.texts and "/generated/" not in other:
                problems.append(f"{name} includes {other}, which is not in {', '.join(FOLDERS)}")
            elif other in PRIVATE and not name.startswith(folder + "/"):
                problems.append(f"{name} includes {other}, which is private to {folder}")
            elif name.startswith("engine/protocol/") and other.startswith("engine/") and not other.startswith("engine/protocol/"):
                problems.append(f"{name} includes {other}: engine/protocol knows nothing of the rest of engine")
    for name, text in tree.texts.items():
        for library, users in USERS.items():
            if not name.startswith(users) and re.search(rf'^[ \t]*#[ \t]*include[ \t]*[<"]{library}', text, re.MULTILINE):
                problems.append(f"{name} includes a header of {library}, which only {', '.join(users)} may")
    for unit, those in graph.items():
        for other, name in those.items():
            if other.split("/")[0] not in FOLDERS:
                continue
            if FOLDERS.index(other.split("/")[0]) > FOLDERS.index(unit.split("/")[0]):
                problems.append(f"{name} includes {other}, of a folder above its own")
            here, there = tree.room_of(unit), tree.room_of(other)
            for room in (here, there):
                if room is not None and room not in tree.rooms:
                    problems.append(f"actors/{room} is no room of actors/CMakeLists.txt, which names: {', '.join(tree.rooms)}")
                    return problems
            if here and there and tree.rooms.index(there) > tree.rooms.index(here):
                problems.append(f"{name} includes {other}: the room {there} lies above {here}")
    for name, by in reached_from(tree, [each for each in tree.texts if each.startswith("actors/passes/")]).items():
        if name.startswith("actors/network/"):
            problems.append(f"{by} includes {name}, and units of passes reach it: a change in network would compile them again")
    library_of, links = tree.libraries()
    for unit, those in graph.items():
        for other, name in those.items():
            here, there = library_of.get(unit), library_of.get(other)
            if here and there and there not in links[here] | {here} and (unit, other) not in UNLINKED:
                problems.append(f"{name} includes {other}: the library {here} does not link {there}")
    without = {unit: {other for other in those if (unit, other) not in EXCEPTIONS} for unit, those in graph.items()}
    for one, other in EXCEPTIONS:
        if one in graph and other not in graph[one]:
            problems.append(f"{one} no longer includes {other}: take the exception out of tests/structure/structure.py")
    for circle in circles(without):
        edges = [f"{without_name} -> {other}" for without_name in circle for other in sorted(without[without_name]) if other in circle]
        problems.append("units include each other in a circle: " + ", ".join(edges))
    rooms = collections.defaultdict(set)
    for unit, those in graph.items():
        for other in those:
            ends = [tree.room_of(each) or each for each in (unit, other)]
            if unit.startswith("actors/") and other.startswith("actors/") and ends[0] != ends[1]:
                rooms[ends[0]].add(ends[1])
    for circle in circles(rooms):
        problems.append("rooms and public units of actors/ include each other in a circle: " + ", ".join(circle))
    return problems


def reached_from(tree, names):
    """The files and those that they reach, with the file that includes each."""
    reached = {}
    waiting = [(name, None) for name in names]
    while waiting:
        name, by = waiting.pop(0)
        if name not in reached:
            reached[name] = by
            waiting += [(each, name) for each in tree.includes.get(name, ())]
    return reached


def check_public(tree):
    if not tree.public:
        return ["cmake/installed_headers.cmake names no public headers; expected 'set(troupe_public_headers actors/troupe.hpp ...)'"]
    listed = tree.public + tree.needed
    problems = [f"cmake/installed_headers.cmake names {name}, which is not there" for name in listed if name not in tree.texts]
    problems += [f"cmake/installed_headers.cmake names {name} twice" for name, times in collections.Counter(listed).items() if times > 1]
    problems += [f"{name} is installed and includes {other}, which is not; name it in cmake/installed_headers.cmake, or do without"
                 for name in listed for other in tree.includes.get(name, ()) if other not in listed]
    reached = reached_from(tree, tree.public)
    problems += [f"cmake/installed_headers.cmake names {name}, which no header for programs needs: take it out" for name in tree.needed if name not in reached]
    return problems


def check_promises(tree):
    owners = collections.defaultdict(set)
    for name, text in tree.texts.items():
        for letters in re.findall(r"^[ \t]*///   ([A-Z]{2})-\d+ ", text, re.MULTILINE):
            owners[letters].add(name)
    problems = [f"promises {letters}-n stand in {' and '.join(sorted(names))}; give one of them other letters"
                for letters, names in sorted(owners.items()) if len(names) > 1]
    made = {promise for text in tree.texts.values() for promise in re.findall(r"^[ \t]*///   ([A-Z]{2}-\d+) ", text, re.MULTILINE)}
    for path in sorted((tree.root / "tests").rglob("*_test.cpp")):
        text = path.read_text()
        made_here = set(re.findall(r"^[ \t]*///   ([A-Z]{2}-\d+) ", text, re.MULTILINE))
        cited = {each for comment in re.findall(r"// [^\n]*", text) for each in re.findall(r"\b[A-Z]{2}-\d+\b", comment)}
        for promise in sorted(cited):
            if promise not in made | made_here and promise.split("-")[0] in owners:
                problems.append(f"{path.relative_to(tree.root)} cites {promise}, which no header promises")
    return problems


PROMISE = re.compile(r"^[ \t]*///   ([A-Z]{2}-\d+) ", re.MULTILINE)
TESTS = re.compile(r"\A// SPDX[^\n]*\n// Tests: ([^\n]*)\n")


def named_tests(text):
    """The tests that a source names below its SPDX line, or None where it names none."""
    found = TESTS.match(text)
    return None if found is None else found[1].split(", ")


def promises_by_name(tree):
    return {promise: name for name, text in tree.texts.items() for promise in PROMISE.findall(text)}


def cited_promises(tree):
    cited = set()
    for path in sorted([*(tree.root / "tests").rglob("*.?pp"), *(tree.root / "tests").rglob("*_test.py")]):
        for comment in re.findall(r"(?<!/)//(?!/)[^\n]*|# [^\n]*", path.read_text()):
            cited.update(re.findall(r"\b[A-Z]{2}-\d+\b", comment))
    return cited


def check_tests(tree):
    problems = []
    units = collections.defaultdict(list)
    for name in tree.texts:
        units[unit_of(name)].append(name)
    excused = set()
    for unit, files in sorted(units.items()):
        first = unit + ".hpp" if unit + ".hpp" in files else unit + ".cpp"
        named = named_tests(tree.texts[first])
        for test in named or ():
            if not test.startswith("tests/") or not (tree.root / test).is_file():
                problems.append(f"{first} names the test {test}, which is not there; expected '// Tests: tests/PATH_test.cpp, ...'")
        for name in files:
            if re.search(r"^// Tests:", tree.texts[name], re.MULTILINE) and (name != first or named is None):
                problems.append(f"{name} names tests where nobody looks; expected the line right below the SPDX line of {first}")
        needs_one = any(name.endswith(".cpp") for name in files) or any(PROMISE.search(tree.texts[name]) for name in files)
        if not needs_one or named or (tree.root / f"tests/{unit}_test.cpp").is_file():
            continue
        reasons = [each for each in UNTESTED if each == unit or each.endswith("/") and unit.startswith(each)]
        excused.update(reasons)
        if not reasons:
            problems.append(f"{unit} has no test: expected tests/{unit}_test.cpp, or '// Tests: tests/PATH_test.cpp' below the "
                            f"SPDX line of {first}")
    cited = cited_promises(tree)
    for promise, name in sorted(promises_by_name(tree).items()):
        if promise not in cited and promise not in UNCITED:
            problems.append(f"no test cites {promise} of {name}; cite it in a comment of a test that fails when it is broken")
    problems += [f"{each} needs no exception any more: take it out of tests/structure/structure.py"
                 for each in UNTESTED if each not in excused and (tree.root / each).exists()]
    problems += [f"{each} is cited: take it out of the exceptions of tests/structure/structure.py" for each in UNCITED if each in cited]
    return problems


def anchors(page):
    """The names of a page's headings, as links give them."""
    names = set()
    for heading in re.findall(r"^#+ (.*)$", page, re.MULTILINE):
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        names.add(re.sub(r"[^\w\- ]", "", text).replace(" ", "-"))
    return names


def check_links(tree):
    problems = []
    pages = sorted(tree.root.glob("*.md")) + sorted(tree.root.glob("docs/*.md"))
    for page in pages:
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"[a-z]+:", link):
                continue
            name, _, heading = link.partition("#")
            target = (page.parent / name).resolve() if name else page
            if not target.exists():
                problems.append(f"{page.relative_to(tree.root)} links to {link}, which is not there")
            elif heading and heading not in anchors(target.read_text()):
                problems.append(f"{page.relative_to(tree.root)} links to {link}; {target.name} has no such heading")
    return problems


# What writes or reads doubles with the comma of a locale, or groups digits.
OF_A_LOCALE = re.compile(r"std::o?stringstream|\bstrto(?:d|f|ld)\b|\bsto(?:d|f|ld)\b|\bato[f]\b|(?<!S\.)%[-+ #0]*[*\d]*(?:\.[*\d]*)?L?[eEfFgG]\b")


def check_numbers(tree):
    problems = []
    for name, text in tree.texts.items():
        if name.startswith("apps/examples/") or name == "messages/plain_text.hpp":
            continue
        for number, line in enumerate(text.split("\n"), 1):
            found = OF_A_LOCALE.search(re.sub(r"//.*", "", line))
            if found:
                problems.append(f"{name}:{number} uses {found[0]}, which depends on the program's locale; "
                                "use messages/plain_text.hpp or std::from_chars")
    return problems


# Lines of product code. clang-format holds those of C++ too, apart from strings and comments. A line of `// Tests:` is read as
# one, so it may be longer.
MOST_COLUMNS = 128
PRODUCT_CODE = ["messages", "engine", "devices", "actors", "apps", "python/native", "python/torchtroupe"]
CODE_ENDINGS = {".cpp", ".cu", ".hpp", ".py"}


def check_columns(tree):
    problems = []
    paths = [each for folder in PRODUCT_CODE for each in (tree.root / folder).rglob("*") if each.suffix in CODE_ENDINGS]
    for path in sorted(paths):
        for number, line in enumerate(path.read_text().split("\n"), 1):
            if len(line) > MOST_COLUMNS and not line.startswith("// Tests:"):
                problems.append(f"{path.relative_to(tree.root)}:{number} has {len(line)} characters, "
                                f"expected at most {MOST_COLUMNS}; break the line")
    return problems


CLASS = re.compile(r"(?<!enum )\b(class|struct)\s+([A-Za-z_][\w:]*)(?:\s+final)?\s*(?::[^;{()]*)?\{")


def end_of_braces(text, start):
    depth, at = 1, start
    while depth and at < len(text):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 1
    return at


def declarations(body):
    """What a class declares, each as a text with {} for all that stands in braces; "public:" and the like are texts of their own."""
    current, at, brackets = "", 0, 0
    while at < len(body):
        char = body[at]
        brackets += {"(": 1, ")": -1}.get(char, 0)
        if char == "{":
            at = end_of_braces(body, at + 1)
            current += "{}"
            if brackets == 0 and "(" in current and not re.match(r"\s*[;,{]", body[at:]):
                yield current
                current = ""
            continue
        at += 1
        if brackets == 0 and (char == ";" or char == ":" and current.strip() in ("public", "private", "protected")):
            yield current + char
            current = ""
        else:
            current += char


def classes(text):
    """The classes of a source: name, public functions (without those that are deleted or defaulted), members."""
    text = re.sub(r"//[^\n]*|^[ \t]*#[^\n]*| TROUPE_(GUARDED_BY|REQUIRES)\([^()]*\)", "", text, flags=re.MULTILINE)
    text = re.sub(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', '""', text)
    for found in CLASS.finditer(text):
        is_public, functions, members = found[1] == "struct", 0, 0
        for each in declarations(text[found.end():end_of_braces(text, found.end()) - 1]):
            each = " ".join(each.split())
            if each in ("public:", "private:", "protected:"):
                is_public = each == "public:"
                continue
            is_function = "operator" in each or "(" in re.sub(r"<[^<>]*(?:<[^<>]*>[^<>]*)*>", "", re.split(r"[={]", each)[0])
            if re.match(r"(using|typedef|friend|static_assert|enum|class|struct|union)\b", each) or re.search(r"= (delete|default);", each):
                continue
            if is_function:
                functions += is_public
            elif each != ";" and not re.match(r"(static|constexpr|inline) ", each):
                members += 1
        if found[1] == "class" or functions > FUNCTIONS_OF_DATA:
            yield found[2], functions, members


def check_classes(tree):
    sizes = {(name, each): (functions, members) for name, text in tree.texts.items() if name.startswith("actors/")
             for each, functions, members in classes(text)}
    for (name, each), (functions, members) in sorted(sizes.items(), key=lambda size: -sum(size[1]))[:10]:
        print(f"{each:<28} {functions:>3} public functions {members:>3} members  {name}")
    problems = []
    for which, (functions, members) in sizes.items():
        if which != FACE and (functions > MOST_FUNCTIONS or members > MOST_MEMBERS):
            problems.append(f"{which[0]}: {which[1]} has {functions} public functions and {members} members, expected at most {MOST_FUNCTIONS} and {MOST_MEMBERS}; make two classes of it")
    return problems


def picture(tree):
    lines, below = collections.Counter(), collections.defaultdict(set)
    for name, text in tree.texts.items():
        room = tree.room_of(unit_of(name))
        folder = f"actors/{room}" if room else name.split("/")[0] + ("/protocol" if name.startswith("engine/protocol/") else "")
        lines[folder] += text.count("\n")
        for other in tree.includes[name]:
            there = tree.room_of(unit_of(other))
            below[folder].add(f"actors/{there}" if there else other.split("/")[0] + ("/protocol" if other.startswith("engine/protocol/") else ""))
    order = ["messages", "engine/protocol", "engine", "devices"] + [f"actors/{room}" for room in tree.rooms] + ["actors", "apps"]
    for folder in order:
        those = [each for each in order if each in below[folder] and each != folder]
        print(f"{folder:<20} {lines[folder]:>6}  {' '.join(each.removeprefix('actors/') for each in those)}")
    return []


def main():
    checks = {"includes": check_includes, "public": check_public, "promises": check_promises, "tests": check_tests,
              "numbers": check_numbers, "links": check_links, "classes": check_classes, "columns": check_columns,
              "picture": picture}
    if len(sys.argv) != 3 or sys.argv[2] not in checks:
        sys.exit(__doc__)
    problems = checks[sys.argv[2]](Tree(sys.argv[1]))
    for each in problems:
        print(f"structure: {each}")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
