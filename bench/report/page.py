#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes one page, report.html, of all figures that benchmarks have written into a folder, and prints one table of ratios.

--compare says instead which rows of two runs differ beyond the noise. Status 1: a row got worse; 2: a file could not be read or written.
The pictures of the page take matplotlib (Debian's python3-matplotlib). CMake names this script bench_report."""
import argparse
import datetime
import functools
import html
import io
import json
import math
import os
import pathlib
import re
import sys

NO_PAGE = "bench_report: no page without matplotlib: apt-get install python3-matplotlib, then make bench-report"
FIRST_GROUPS = ["messages", "scheduling", "savina", "grain", "shape", "memory", "lanes", "training", "scale"]  # others follow by name
INTRODUCTION = """Each row compares troupe with a <b>peer</b>, another system that does the same work in the same run, and with a <b>floor</b>,
the least that this machine allows. The <b>ratio</b> is what the <b>bar</b> bounds: ≥ is a ratio that should be at least as large, ≤ one that
should be at most as large. Small numbers below a figure are its spread: the middle half of the runs."""


class Problem(Exception):
    """Something that the user has to mend."""


# Figures as people write them.

SIZES = {"time": [("ns", 1e-9), ("µs", 1e-6), ("ms", 1e-3), ("s", 1)],
         "memory": [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)]}
UNITS = {name: (kind, size) for kind, sizes in SIZES.items() for name, size in sizes}
UNITS.update({"us": ("time", 1e-6), "byte": ("memory", 1), "bytes": ("memory", 1)})


def number_text(value):
    """Three digits, and commas between thousands: "0.123", "4.56", "78.9", "1,234,567". Two digits below 0.01."""
    size = abs(value)
    if value == 0 or size < 0.01:
        return f"{value:.2g}"
    return f"{value:,.{3 if size < 1 else 2 if size < 10 else 1 if size < 100 else 0}f}"


def short_text(value):
    """No digits that say nothing: "0.5", "20", "1,000"."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def tick_text(value, largest):
    """As short_text(), but "20 k" and "1 M" if `largest` is 10,000 or more."""
    for size, name in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if largest >= 10_000 and abs(value) >= size:
            return short_text(value / size) + name
    return short_text(value)


def unit_text(unit):
    return re.sub(r"^us(?=$|[/ ])", "µs", unit)


def best_unit(kind, value):
    """The largest unit that is at most the value, which counts in seconds or bytes."""
    return max([each for each in SIZES[kind] if each[1] <= value * (1 + 1e-9)] or SIZES[kind][:1], key=lambda each: each[1])


def value_text(value, unit):
    """With the unit, in the size that suits the value: "64 KiB", "1.25 ms", "317 tokens/s"."""
    if unit not in UNITS or value == 0:
        return f"{number_text(value)} {unit_text(unit)}".strip()
    kind, size = UNITS[unit]
    name, best = best_unit(kind, abs(value * size))
    shown = value * size / best
    whole = abs(shown - round(shown)) < 1e-6 * abs(shown)
    return f"{short_text(round(shown)) if whole else number_text(shown)} {name}"


# Files.

def read_json(file):
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except OSError:
        raise Problem(f"cannot read '{file}': expected a JSON file of a benchmark, but there is none") from None
    except ValueError as wrong:
        raise Problem(f"'{file}' is no JSON ({wrong}); measure again, or remove the file") from None


def read_checked(file, check, what):
    content = read_json(file)
    try:
        check(content)
    except (KeyError, TypeError, ValueError, AttributeError) as wrong:
        raise Problem(f"'{file}' is no {what} ({type(wrong).__name__}: {wrong}); measure again, or remove the file") from None
    return content


def expect(condition, what):
    if not condition:
        raise ValueError(what)


def is_number(value):
    return isinstance(value, (int, float)) and math.isfinite(value)


def check_rows(rows):
    expect(isinstance(rows, list), "expected a list of rows")
    for row in rows:
        row["is_upper"] = "at_most" in row
        row["bar"] = float(row["at_most" if row["is_upper"] else "at_least"])
        row["has_bar"] = row["is_upper"] or row["bar"] > 0  # Savina's programs have none
        for key in ("peer", "troupe", "floor"):
            row[key] = float(row[key] or 0)
        row["ratio"] = math.nan if row["ratio"] is None else float(row["ratio"])  # null: a benchmark could not divide
        row["ok"] = row["ratio"] <= row["bar"] if row["is_upper"] else row["ratio"] >= row["bar"]
        row["spread"] = {key: [float(low), float(high)] for key, (low, high) in row.get("spread", {}).items()}
        for key in ("text", "note", "peer_name"):
            row.setdefault(key, "")
        for key in ("name", "unit", "text", "note", "peer_name"):
            expect(isinstance(row[key], str), f"expected a text as '{key}'")


def check_plots(plots):
    expect(isinstance(plots, list), "expected a list of plots")
    for plot in plots:
        where = f"plot {plot['group']}/{plot['name']}"
        texts = [plot[key] for key in ("group", "title", "how_to_read")] + [plot[axis][key] for axis in "xy" for key in ("label", "unit")]
        expect(all(isinstance(each, str) for each in [*texts, plot.get("default_name", ""), *(curve["name"] for curve in plot["series"])]),
               f"{where}: expected texts as names, titles and units")
        expect(plot.get("default_x") is None or is_number(plot["default_x"]), f"{where}: the default is '{plot.get('default_x')}', expected a number")
        expect(plot["title"] and plot["how_to_read"] and any(curve["points"] for curve in plot["series"]), f"{where}: there is no point in it")
        for curve in plot["series"]:
            expect(curve["role"] in ("floor", "peer", "troupe", "variant"), f"{where}: the role is '{curve['role']}', expected floor, peer, troupe or variant")
            for point in curve["points"]:
                expect(len(point) in (2, 4) and all(map(is_number, point)), f"{where}: a point is {point}, expected [x, y] or [x, y, low, high]")
                expect(not any(plot[axis].get("log") and value < 0 for axis, value in zip("xy", point)), f"{where}: '{curve['name']}' has a value below 0 on a logarithmic axis")
            curve["points"].sort(key=lambda point: point[0])


def read_rows(file):
    return read_checked(file, check_rows, "report of a benchmark")


def date_text(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


def read_folder(folder):
    """The machine, or None; the rows by report, with the date of each; and the plots."""
    if not folder.is_dir():
        raise Problem(f"there is no folder '{folder}'; expected one that benchmarks have written into")
    reports, plots = {}, []
    for file in sorted(folder.glob("*.json")):
        if file.name.endswith(".curves.json"):
            plots += read_checked(file, check_plots, "list of curves")
        elif file.name != "machine.json" and "." not in file.stem:  # NAME.KIND.json is a program's own
            reports[file.stem] = (date_text(file.stat().st_mtime), read_rows(file))
    if not reports and not plots:
        raise Problem(f"'{folder}' has no figures: expected NAME.json or NAME.curves.json of a benchmark")
    machine = folder / "machine.json"
    return read_checked(machine, facts_of, "machine") if machine.exists() else None, reports, plots


def write_text(file, text):
    """Puts the file in place by a rename."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh = file.with_name(file.name + ".new")
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(file)
    except OSError as wrong:
        raise Problem(f"cannot write '{file}': {wrong}") from None


# The machine.

def this_machine(versions, root=pathlib.Path("/")):
    """What is known of the machine. `root`: where proc, sys and etc are."""
    def text_of(name):
        try:
            return (root / name).read_text()
        except OSError:
            return ""

    def field(name, pattern):
        found = re.search(pattern, text_of(name), re.MULTILINE)
        return found[1] if found else ""

    names = os.uname()
    return {"cpu": field("proc/cpuinfo", r"^model name\s*: (.*)"), "cores": len(re.findall("^processor", text_of("proc/cpuinfo"), re.MULTILINE)),
            "virtual": field("proc/cpuinfo", r"^flags\s*:.* (hypervisor)\b") != "",
            "memory_mib": int(field("proc/meminfo", r"^MemTotal:\s*(\d+)") or 0) // 1024,
            "system": field("etc/os-release", '^PRETTY_NAME="?([^"\n]*)'), "kernel": f"{names.sysname} {names.release} {names.machine}",
            "governor": text_of("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").strip(),
            "date": date_text(datetime.datetime.now().timestamp()), "load": float(field("proc/loadavg", r"^(\S+)") or 0), **versions}


def facts_of(machine):
    """The facts that are known, each with its name, in the order of the page."""
    cores = f"{machine['cores']} core{'s' if machine['cores'] > 1 else ''}" if machine["cores"] else ""
    commit = f" ({machine['commit']})" if machine["commit"] else ""
    known = [("measured", machine["date"] + (", quick run" if machine["quick"] else "")),
             ("processor", ", ".join(filter(None, [machine["cpu"], cores, "virtual machine" if machine["virtual"] else ""]))),
             ("memory", f"{machine['memory_mib'] / 1024:.1f} GiB" if machine["memory_mib"] else ""),
             ("system", ", ".join(filter(None, [machine["system"], machine["kernel"]]))), ("clock governor", machine["governor"]),
             ("load before", f"{machine['load']:.2f}"),
             ("troupe", f"{machine['troupe']}{commit}, {machine['build_type']}, {machine['compiler']}"),
             ("libraries", f"libtorch {machine['libtorch']}, CAF {machine['caf']}, OpenSSL {machine['openssl']}")]
    return [(name, text) for name, text in known if text]


# Tables for a terminal.

def ratios_as_text(reports):
    def cell(value):
        return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}" if value else "-"

    width = max([4] + [len(row["name"]) + 2 for _, rows in reports.values() for row in rows])
    layout = f"{{:<{width}}}  {{:<12}} {{:>9}} {{:>9}} {{:>9}} {{:>9}}  {{}}\n"
    text = layout.format("name", "unit", "floor", "peer", "troupe", "ratio", "bar")
    for name, (_, rows) in reports.items():
        text += name + "\n"
        for row in rows:
            bar = f"{'<=' if row['is_upper'] else '>='} {row['bar']:<8.6g} {'ok' if row['ok'] else 'short'}" if row["has_bar"] else ""
            text += layout.format("  " + row["name"], row["unit"], cell(row["floor"]), cell(row["peer"]), cell(row["troupe"]),
                                  cell(row["ratio"]) if row["ratio"] else "0", bar)
    return text + count_text(reports) + "\n"


def count_text(reports):
    all_rows = [row for _, rows in reports.values() for row in rows if row["has_bar"]]
    return f"{sum(row['ok'] for row in all_rows)} of {len(all_rows)} figures reach their bars"


def noise_of(row):
    """Half of the ratio's spread by the ratio; without one, that of the peer's figure plus that of troupe's."""
    def half(key):
        return (row["spread"][key][1] - row["spread"][key][0]) / 2 / abs(row[key]) if key in row["spread"] and row[key] else 0

    return half("ratio") if "ratio" in row["spread"] else half("peer") + half("troupe")


def compared(before, after, least_noise):
    """How the ratio of a row has changed, the noise, and the verdict."""
    noise = max(least_noise, noise_of(before) + noise_of(after))
    grown = after["ratio"] - before["ratio"]
    change = 0 if grown == 0 else grown / abs(before["ratio"]) if before["ratio"] else math.inf
    return change, noise, "same" if abs(change) <= noise else "better" if (change < 0 if after["is_upper"] else change > 0) else "worse"


def compare(before, after, least_noise):
    """For each row of either run: its name, the row before and after (or None), and what compared() says."""
    def by_name(reports):
        return {f"{name}/{row['name']}": row for name, (_, rows) in reports.items() for row in rows}

    old, new = by_name(before), by_name(after)
    found = [(name, old[name], row, *compared(old[name], row, least_noise)) if name in old else (name, None, row, 0, 0, "only in NEW")
             for name, row in new.items()]
    return found + [(name, row, None, 0, 0, "only in OLD") for name, row in old.items() if name not in new]


def comparison_as_text(rows, shows_all):
    def both(before, after, key):
        return " -> ".join("-" if row is None else f"{row[key]:.4g}" for row in (before, after))

    shown = [row for row in rows if shows_all or row[5] != "same"]
    width = max([4] + [len(row[0]) for row in shown])
    layout = f"{{:<{width}}}  {{:<12}} {{:>22}} {{:>20}} {{:>9}} {{:>8}}  {{}}\n"
    text = layout.format("name", "unit", "troupe", "ratio", "change", "noise", "ratio got") if shown else ""
    for name, before, after, change, noise, verdict in shown:
        of_both = ["", ""] if None in (before, after) else ["from 0" if math.isinf(change) else f"{change:+.1%}", f"{noise:.1%}"]
        text += layout.format(name, (after or before)["unit"], both(before, after, "troupe"), both(before, after, "ratio"), *of_both, verdict)
    counts = [sum(row[5] == verdict for row in rows) for verdict in ("worse", "better", "same", "only in OLD", "only in NEW")]
    return text + "{} worse, {} better, {} the same within the noise; {} only in OLD, {} only in NEW\n".format(*counts)


def differences_of(before, after):
    """A line for each fact in which two machines differ, except for the date and the load."""
    text = "note: figures of a quick run are rough\n" if any(each and each["quick"] for each in (before, after)) else ""
    old = dict(facts_of(before)) if before else {}
    for name, fact in facts_of(after) if before and after else []:
        if name not in ("measured", "load before") and old.get(name) != fact:
            text += f"note: {name} differs: OLD {old.get(name, 'not known')}; NEW {fact}\n"
    return text


def read_both(before, after):
    """Two folders or two files, as machine and reports. Of two files the names do not count."""
    def read(path, name):
        return read_folder(path)[:2] if path.is_dir() else (None, {name: ("", read_rows(path))})

    return read(before, (before if after.is_dir() else after).stem), read(after, after.stem)


# Pictures. Colours are names of the page's style, so that they change with the theme.

WIDTH, HEIGHT, LEFT, RIGHT, BOTTOM = 360, 276, 56, 344, 42
INKS = {name: f"#0000{i:02x}" for i, name in enumerate(["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "grid", "quiet", "text", "card"], 0xa0)}
MARKS = ["D", "o", "s", "^", "v", "P", "o", "s"]  # one for each colour
FIRST_HOLLOW = 6
MOST_MARKED = 30


def looks_of(curves):
    """Colour and dashes of each curve. The first floor, troupe, the first peer and five more have colours of their own."""
    looks, taken, variants = [], set(), 0
    for curve in curves:
        colour = ["floor", "troupe", "peer", "variant"].index(curve["role"])
        dashes = {0: (2, 3), 2: (7, 3)}.get(colour)
        if colour == 3 or colour in taken:
            if variants >= 5:
                dashes = (9, 3, 2, 3) if dashes else (12, 3)
            colour, variants = 3 + variants % 5, variants + 1
        taken.add(colour)
        looks.append((colour, dashes))
    return looks


def axis_of(kind, values, wide):
    """The title of an axis, its range, and its marks with their texts. 0 has a position of its own on a logarithmic axis. `wide`: the axis
    begins and ends at round values, and a linear one at 0."""
    from matplotlib.ticker import LogLocator, MaxNLocator
    log, unit = kind.get("log", False), kind["unit"]
    has_zero = log and min(values) == 0
    values = [value for value in values if value > 0 or not log]
    if not values:
        raise Problem(f"the axis '{kind['label']}' has no value that it could show")
    low, high = min(values), max(values)
    if not log and (wide or low <= 0.25 * high):
        low = min(low, 0)
    if low == high:  # one value alone
        low, high = (low / 2, low * 2) if log else (0, 1) if low == 0 else (low - abs(low), low + abs(low))
    size = UNITS.get(unit, ("", 1))[1]
    if log:
        twos = UNITS.get(unit, [""])[0] == "memory" or all(math.frexp(value)[0] == 0.5 for value in values)
        fine = LogLocator(10, (1, 2, 5), numticks=99).tick_values(low, high)
        if wide:
            low, high = max(each for each in fine if each <= low * 1.001), min(each for each in fine if each >= high * 0.999)
        marks = LogLocator(2, numticks=8).tick_values(low * size, high * size) / size if twos else LogLocator(10, numticks=8).tick_values(low, high)
        if sum(low <= each <= high for each in marks) < 3:
            marks = fine if high > 4 * low else MaxNLocator(6, steps=[1, 2, 5, 10]).tick_values(low, high)
        scale = 1
    else:
        name, best = best_unit(UNITS[unit][0], high * size) if unit in UNITS else (unit_text(unit), 1)
        scale = best / size
        marks = MaxNLocator(6, steps=[1, 2, 5, 10]).tick_values(low / scale, high / scale) * scale
        if wide or marks[-1] - high < 0.05 * (high - low):  # 99.9 ends at 100
            high = max(high, marks[-1])
    marks = [0.0] * has_zero + [each for each in marks if low - 1e-9 * high <= each <= high * (1 + 1e-9)]
    if log and unit in UNITS:
        return kind["label"], low, high, {mark: value_text(mark, unit) if mark else "0" for mark in marks}
    title = kind["label"] + (f" ({unit_text(unit) if log else name})" if unit else "")
    return title, low, high, {mark: tick_text(mark / scale, high / scale) for mark in marks}


class Pictures:
    """Draws with matplotlib, whose absence makes the constructor throw ImportError."""

    def __init__(self):
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        self.rc, self.new_canvas, self.new_figure = matplotlib.rcParams, FigureCanvasAgg, Figure
        self.rc.update({"svg.fonttype": "none", "font.size": 12, "lines.scale_dashes": False, "text.parse_math": False})
        self.legends = 0

    def figure(self, width, height):
        figure = self.new_figure(figsize=(width / 72, height / 72), dpi=72)
        self.new_canvas(figure)
        return figure

    def svg_of(self, figure, salt, attributes, more=""):
        """The figure as an element of the page, in which the page chooses fonts and colours. `salt`: what makes its ids unique."""
        self.rc["svg.hashsalt"] = salt
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True)
        text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->|<defs>\s*</defs>", "", out.getvalue(), flags=re.DOTALL)
        text = text[text.index("<svg"):].replace("xlink:href", "href")
        width, height = (round(each * 72) for each in figure.get_size_inches())
        text = f'<svg viewBox="0 0 {width} {height}" {attributes}>' + text[text.index(">") + 1:]
        text = re.sub(r"font: (?:(?:bold|[6-9]00) )?([\d.]+)px [^;\"]*", r"font-size: \1px", text)
        text = re.sub(r"font-family: [^;\"]*;?", "", text)
        for name, ink in INKS.items():
            text = text.replace(ink, f"var(--{name})")
        used = set(re.findall(r'(?:href="|url\()#([\w-]+)', text))
        text = re.sub(r' id="([\w.-]+)"', lambda found: found[0] if found[1] in used else "", text)
        return re.sub(r' transform="rotate\(-0 [^"]*"|\n\s*', "", text).strip().replace("</svg>", more + "</svg>")

    @staticmethod
    def style_of(colour, dashes):
        ink, hollow = INKS[f"s{colour}"], colour >= FIRST_HOLLOW
        return {"color": ink, "linewidth": 2.6 if colour == 1 else 1.8, "linestyle": (0, dashes) if dashes else "-", "markersize": 6.5,
                "marker": MARKS[colour], "markerfacecolor": INKS["card"] if hollow else ink, "markeredgewidth": 1.6 if hollow else 0.8,
                "markeredgecolor": ink if hollow else INKS["card"], "clip_on": False, "solid_joinstyle": "round"}

    @functools.lru_cache(None)
    def piece(self, colour, dashes):
        """A piece of a curve, for the legend. Colour None: of the line at the default."""
        figure = self.figure(32, 14)
        axes = figure.add_axes([0, 0, 1, 1], xlim=(0, 32), ylim=(0, 14))
        axes.axis("off")
        if colour is None:
            axes.axvline(16, color=INKS["text"], linewidth=1.3, linestyle=(0, (4, 3)))
        else:
            axes.plot([1, 16, 31], [7, 7, 7], markevery=[1], **self.style_of(colour, dashes))
        return self.svg_of(figure, f"{colour} {dashes}", 'aria-hidden="true"')

    def legend(self, plot):
        items = [self.piece(*look) + html.escape(curve["name"]) for look, curve in zip(looks_of(plot["series"]), plot["series"])]
        if plot.get("default_name") and not fits(default_text(plot)):
            items.append(self.piece(None, None) + "default of " + html.escape(plot["default_name"]))
        self.legends += 1  # ids of marks are unique
        items = [re.sub(r'((?:id="|#)m\w+)', rf"\1-{self.legends}-{i}", item) for i, item in enumerate(items)]
        return '<ul class="legend">' + "".join(f"<li>{each}</li>" for each in items) + "</ul>\n"

    def picture(self, plot):
        """Axes with marks, a curve with its range for each series, and a line at the default. Each point tells its values where the
        pointer is on it."""
        default = plot.get("default_x")
        figure = self.figure(WIDTH, HEIGHT)
        top = HEIGHT - (24 if default is None else 40)
        axes = figure.add_axes([LEFT / WIDTH, BOTTOM / HEIGHT, (RIGHT - LEFT) / WIDTH, (top - BOTTOM) / HEIGHT])
        self.draw_frame(figure, axes, plot)
        tips = [self.draw_curve(axes, plot, curve, look) for curve, look in zip(plot["series"], looks_of(plot["series"]))]
        if default is not None:
            axes.axvline(default, color=INKS["text"], linewidth=1.3, linestyle=(0, (4, 3)), ymax=1.03, clip_on=False, zorder=1.5)
            text = default_text(plot) if fits(default_text(plot)) else default_text({**plot, "default_name": ""})
            at, half = axes.transData.transform((default, axes.get_ylim()[1]))[0], len(text) * 3.4
            figure.text(min(max(at, half), WIDTH - half) / WIDTH, (top + 9) / HEIGHT, text, ha="center", color=INKS["text"])
        self.hide_overlapping(figure, axes)
        return self.svg_of(figure, f"{plot['group']}/{plot['name']}", f'class="plot" role="img" aria-label="{html.escape(plot["title"])}"', "".join(tips))

    @staticmethod
    def draw_frame(figure, axes, plot):
        points = [point for curve in plot["series"] for point in curve["points"]]
        ends = [each for point in points for each in point[2:] if each > 0 or not plot["y"].get("log")]
        values = {"x": [point[0] for point in points] + [plot[key] for key in ("default_x",) if plot.get(key) is not None],
                  "y": [point[1] for point in points] + ends}
        for name in "xy":
            title, low, high, marks = axis_of(plot[name], values[name], name == "y")
            if 0 in marks and plot[name].get("log"):  # a tenth of the axis
                getattr(axes, f"set_{name}scale")("symlog", linthresh=low, linscale=0.1 * math.log10(high / low))
                low = 0
            elif plot[name].get("log"):
                getattr(axes, f"set_{name}scale")("log")
            axes.set(**{name + "lim": (low, high)})
            axis = getattr(axes, name + "axis")
            axis.set_ticks(list(marks), list(marks.values()))
            axis.set_ticks([], minor=True)
            figure.text((1 if name == "y" else (LEFT + RIGHT) / 2) / WIDTH, (HEIGHT - 12 if name == "y" else 5) / HEIGHT, title,
                        ha="left" if name == "y" else "center", color=INKS["text"])
        if axes.get_xscale() == "symlog":
            axes.text(0.06, 0, "//", transform=axes.transAxes, ha="center", va="center", color=INKS["quiet"])
        axes.tick_params(color=INKS["quiet"], labelcolor=INKS["quiet"], length=4)
        axes.tick_params(axis="y", length=0, pad=6)
        axes.grid(axis="y", color=INKS["grid"], linewidth=1)
        axes.spines[["top", "left", "right"]].set_visible(False)
        axes.spines["bottom"].set_color(INKS["quiet"])

    def draw_curve(self, axes, plot, curve, look):
        """Returns what tells the values of its points."""
        if not curve["points"]:
            return ""
        xs, ys, lows, highs = zip(*(point if len(point) == 4 else point + [point[1]] * 2 for point in curve["points"]))
        style = self.style_of(*look)
        if len(xs) == 1:
            axes.vlines(xs, lows, highs, color=style["color"], linewidth=2)
        elif any(len(point) == 4 for point in curve["points"]):
            axes.fill_between(xs, lows, highs, color=style["color"], alpha=0.2, linewidth=0)
        axes.plot(xs, ys, **{**style, "marker": style["marker"] if len(xs) <= MOST_MARKED else None})
        tips = ""
        for point in curve["points"]:
            x, y = axes.transData.transform(point[:2])
            spread = " ({} to {})".format(*(value_text(each, plot["y"]["unit"]) for each in point[2:])) if len(point) == 4 else ""
            told = [f"{plot[name]['label']}: {value_text(value, plot[name]['unit'])}" for name, value in zip("xy", point)]
            text = html.escape("\n".join([curve["name"], *told]) + spread)
            tips += f'<circle cx="{x:.1f}" cy="{HEIGHT - y:.1f}" r="9" class="hit" fill="var(--s{look[0]})"><title>{text}</title></circle>'
        return tips

    @staticmethod
    def hide_overlapping(figure, axes):
        """Of the marks of x, 0 and both ends come first, then those between."""
        labels, taken = axes.get_xticklabels(), []
        for label in labels[:1] + labels[:0:-1]:
            box = label.get_window_extent(figure.canvas.get_renderer()).padded(3)
            label.set_visible(not any(box.overlaps(other) for other in taken))
            if label.get_visible():
                taken.append(box)


def default_text(plot):
    unit = plot["x"]["unit"]
    value = value_text(plot["default_x"], unit) if unit in UNITS else tick_text(plot["default_x"], 0)
    return f"default of {plot['default_name']}: {value}" if plot.get("default_name") else f"default: {value}"


def fits(text):
    return len(text) * 7 < WIDTH


# The page.

def capital(text):
    return text[:1].upper() + text[1:]


def small(text):
    return f"<small>{html.escape(text)}</small>" if text else ""


def figure_cell(row, key):
    spread = " – ".join(map(number_text, row["spread"][key])) if key in row["spread"] and row[key] else ""
    value = number_text(row[key]) if row[key] or key == "ratio" else "–"
    return f'<td class="n" data-label="{key}">{value}{small(spread)}</td>'


def row_of_page(row):
    cells = "".join(figure_cell(row, key) for key in ("floor", "peer", "troupe", "ratio"))
    bar = f'{"≤" if row["is_upper"] else "≥"} {short_text(row["bar"])}' if row["has_bar"] else "–"
    reached = "✗ short" if not row["ok"] else "✓ ok" if row["has_bar"] else ""
    return (f'<tr class="row{"" if row["ok"] else " is-short"}"><td class="name"><code>{html.escape(row["name"])}</code>'
            f'{small(row.get("text", ""))}{small(row.get("note", ""))}</td><td class="n unit">{html.escape(unit_text(row["unit"]))}</td>{cells}'
            f'<td class="n" data-label="bar">{bar}</td><td class="{"ok" if row["ok"] else "short"}">{reached}</td></tr>\n')


def ratios(reports):
    missed = ", ".join(f"<code>{html.escape(row['name'])}</code>" for _, rows in reports.values() for row in rows if not row["ok"])
    body = ""
    for name, (date, rows) in reports.items():
        peer = rows[0].get("peer_name", "") if rows else ""
        peer = f"peer: {html.escape(peer)}; " if peer not in ("", "peer", "beside") else ""
        body += f'<tr class="group"><th colspan="8">{html.escape(capital(name))}<span>{peer}written {date}</span></th></tr>\n'
        body += "".join(map(row_of_page, rows))
    heads = "".join(f'<th class="n">{each}</th>' for each in ("unit", "floor", "peer", "troupe", "ratio", "bar"))
    return (f'<section><h2 id="ratios">Ratios</h2>\n<p>{count_text(reports)}.{f" Short: {missed}." if missed else ""}</p>\n<p>{INTRODUCTION}</p>\n'
            f'<table class="ratios"><thead><tr><th>row</th>{heads}<th>reached</th></tr></thead><tbody>\n{body}</tbody></table></section>\n')


def figure_of(plot, pictures):
    cells = ""
    for curve in plot["series"]:
        for point in curve["points"]:
            x, y, *spread = (value_text(value, plot[axis]["unit"]) for axis, value in zip("xyyy", point))
            cells += (f'<tr><td>{html.escape(curve["name"])}</td><td class="n">{html.escape(x)}</td>'
                      f'<td class="n">{html.escape(y)}{small(" – ".join(spread))}</td></tr>\n')
    heads = "".join(f'<th class="n">{html.escape(plot[axis]["label"])}</th>' for axis in "xy")
    return (f'<figure><h3>{html.escape(plot["title"])}</h3>\n<p>{html.escape(plot["how_to_read"])}</p>\n{pictures.legend(plot)}{pictures.picture(plot)}\n'
            f"<details><summary>Figures of this plot</summary><table><thead><tr><th>curve</th>{heads}</tr></thead><tbody>\n{cells}</tbody></table>"
            "</details>\n</figure>\n")


def facts(machine):
    if machine is None:
        return '<p class="rough">The machine was not recorded: there is no file machine.json beside the figures.</p>\n'
    rough = '<p class="rough">Figures of a quick run are rough: the runs are too few and too short to judge by them.</p>\n' if machine["quick"] else ""
    items = "".join(f"<div><dt>{html.escape(name)}</dt><dd>{html.escape(text)}</dd></div>\n" for name, text in facts_of(machine))
    return f'<dl class="facts">\n{items}</dl>\n{rough}'


def page_of(machine, reports, plots, pictures):
    """A page that needs nothing else, neither files nor a network."""
    groups = sorted({plot["group"] for plot in plots}, key=lambda each: (FIRST_GROUPS.index(each) if each in FIRST_GROUPS else len(FIRST_GROUPS), each))
    ids = {group: "group-" + re.sub(r"\W", "-", group) for group in groups}
    links = ('<a href="#ratios">Ratios</a>' if reports else "") + "".join(f'<a href="#{ids[each]}">{html.escape(capital(each))}</a>' for each in groups)
    body = ratios(reports) if reports else ""
    for group in groups:
        body += f'<section><h2 id="{ids[group]}">{html.escape(capital(group))}</h2>\n<div class="plots">\n'
        body += "".join(figure_of(plot, pictures) for plot in plots if plot["group"] == group) + "</div></section>\n"
    style = pathlib.Path(os.path.realpath(__file__)).with_name("page.css").read_text(encoding="utf-8")
    return (f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/><meta name="viewport" content="width=device-width, initial-scale=1"/>'
            f"<title>troupe bench</title><style>{style}</style></head><body>\n<header><h1>What troupe costs, beside its peers</h1>\n{facts(machine)}</header>\n"
            f"<nav>{links}</nav>\n{body}<footer>A shaded band is the middle half of the runs. The pointer on a point shows its values. All runs shared one "
            "machine, so compare figures of one run only.</footer>\n</body></html>\n")


# The program.

def make_page(folder):
    machine, reports, plots = read_folder(folder)
    print(ratios_as_text(reports) if reports else "", end="")
    try:
        pictures = Pictures()
    except ImportError:
        return print(NO_PAGE)
    write_text(folder / "report.html", page_of(machine, reports, plots, pictures))
    return print(f"written to {folder / 'report.html'}")


def note_machine(options):
    versions = read_json(pathlib.Path(sys.argv[0]).with_name("versions.json"))
    machine = {**this_machine(versions), "quick": options.quick, "commit": options.commit}
    write_text(options.folder / "machine.json", json.dumps(machine, indent=1) + "\n")


def compare_runs(options):
    (old_machine, old), (new_machine, new) = read_both(*options.compare)
    rows = compare(old, new, options.noise / 100)
    print(differences_of(old_machine, new_machine) + comparison_as_text(rows, options.all), end="")
    return 1 if any(row[5] == "worse" for row in rows) else 0


def main():
    parser = argparse.ArgumentParser(prog="bench_report", description=__doc__.split("\n\nThe")[0], epilog="Example: bench_report --compare out/before out/bench")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("out/bench"), help="folder of the figures; report.html is written into it (out/bench)")
    parser.add_argument("--compare", type=pathlib.Path, nargs=2, metavar=("OLD", "NEW"), help="two runs: two folders, or two files NAME.json")
    parser.add_argument("--noise", type=float, default=5, metavar="PERCENT", help="with --compare: smaller changes of a ratio never count (5)")
    parser.add_argument("--all", action="store_true", help="with --compare: also print rows that are the same")
    parser.add_argument("--machine", action="store_true", help="write machine.json, before the benchmarks run, and nothing else")
    parser.add_argument("--quick", action="store_true", help="with --machine: the figures will be those of a quick run")
    parser.add_argument("--commit", default="", help="with --machine: the commit that is measured")
    options = parser.parse_args()
    try:
        if options.compare:
            return compare_runs(options)
        return note_machine(options) if options.machine else make_page(options.folder)
    except Problem as problem:
        print(f"bench_report: {problem}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
