"""Shows the tasks of fibra in gdb: those of a process, or of a core file.

    source tools/fibra-gdb.py
    fibra tasks             lists the tasks that have started: state, and what each waits for
    fibra task 12 bt        shows the stack of the task with id 12
    fibra apply all bt      shows the stacks of all of them
    fibra graph             shows which tasks wait for which, for Graphviz

Nothing is called in the process, and no register is written. The tables are found by the note `.note.fibra` of the binary; see
`runtime/src/scheduler/note.rs`.
"""

import json
import re
import struct
from collections import namedtuple

import gdb
from gdb.unwinder import Unwinder, register_unwinder

VERSION = 1
NONE = 2**64 - 1
# Of counts and lengths, since memory may be anything.
MOST = 1 << 16

# `Layout` in `runtime/src/tasks/header.rs`.
FIELDS = "word mask asleep id record coroutine saved pushed base away big_coroutine big_outer traits name spawned_at"
Layout = namedtuple("Layout", FIELDS)
Wait = namedtuple("Wait", "name ended_by object owner descriptor arms")
Context = namedtuple("Context", "pc sp fp")


def read(address, size):
    """Returns bytes of memory, or None where there are none."""
    try:
        return bytes(gdb.selected_inferior().read_memory(address, size))
    except (gdb.error, OverflowError):
        return None


def words(address, count):
    """Returns words of memory, each None where there are none."""
    found = read(address % 2**64, 8 * count)
    return struct.unpack(f"<{count}Q", found) if found else [None] * count


def word(address):
    return words(address, 1)[0]


def text(address, size):
    found = read(address, size) if address and size is not None and size < MOST else None
    return printable(found) if found is not None else None


def printable(found):
    """Decodes text. A control character could move the cursor or forge a line, and is escaped."""
    letters = found.decode(errors="replace")
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in letters)


def wait(record):
    """Reads what a task waits for; see `runtime/src/waiter/description.rs`."""
    description, target = words(record, 2)
    found = read(description, 64) if description else None
    if not found or found[:8] != b"fibrawt1":
        return None
    ended_by, owner, shift, descriptor, arms = struct.unpack("<5Q", found[24:])
    mark = word(target + owner) if owner != NONE else None
    if mark is not None:
        # The address of a waiter with flags, or a number.
        mark = ("address", mark & ~7) if shift == 64 else ("number", mark >> shift)
    number = read((target + descriptor) % 2**64, 4) if descriptor != NONE else None
    others, arm = [], word(record + arms) if arms != NONE else None
    while arm and len(others) < MOST:
        others.append(wait(arm + 8))
        arm = word(arm)
    name, mark = printable(found[8:24].rstrip(b"\0")), mark if mark and mark[1] else None
    number = struct.unpack("<i", number)[0] if number else None
    return Wait(name, ended_by, target, mark, number, [other for other in others if other])


class Task:
    """A task that has started and not ended."""

    def __init__(self, layout, header):
        self.header = header
        self.id, away = word(header + layout.id), word(header + layout.away)
        coroutines = []  # Innermost first.
        while away and len(coroutines) < 100:
            coroutines.append(away + layout.big_coroutine)
            away = word(away + layout.big_outer)
        coroutines.append(header + layout.coroutine)
        saved = word(coroutines[-1] + layout.saved)
        is_asleep = (word(header + layout.word) or 0) & layout.mask == layout.asleep
        self.wait = wait(word(header + layout.record)) if saved and is_asleep else None
        self.state = ("suspended" if is_asleep else "ready") if saved else "running"
        if self.wait and self.wait.ended_by == 3:
            self.state = "blocking"
        self.has_ended = saved in (None, 1) or self.id is None
        self.bases = [word(coroutine + layout.base) for coroutine in coroutines]
        self.contexts = [context(layout, coroutine) for coroutine in coroutines if saved]
        traits = word(header + layout.traits)
        counts, size = words(traits + layout.name, 2) if traits else (None, None)
        self.name = text(counts + 16, size) if counts else None
        place = word(header + layout.spawned_at)
        file, size, position = words(place, 3) if place else (None, None, None)
        file = text(file, size)
        self.place = f"{file}:{position % 2**32}:{position >> 32}" if file else None

    def __str__(self):
        if self.name:
            return f"task '{self.name}' (id {self.id})"
        return f"task (id {self.id}, spawned at {self.place})" if self.place else f"task (id {self.id})"


def context(layout, coroutine):
    """Returns where a coroutine goes on that does not run."""
    sp, pc, fp = words(coroutine + layout.saved, 3)
    if layout.pushed and sp:
        pc, _, fp = words(sp, 3)
    return Context(pc, (sp or 0) + layout.pushed, fp)


def all_tasks():
    """Returns all tasks, by their ids."""
    found, others, headers = [], [], re.findall(r"(0x\w+) - 0x\w+ is \.note\.fibra\b", gdb.execute("info files", to_string=True))
    if not headers:
        raise gdb.GdbError("the program does not use fibra: it has no note of that name")
    for note in (int(header, 16) for header in headers):
        content = read(note, 32)
        if not content:
            raise gdb.GdbError("there is no process and no core file")
        _, _, version, _, distance = struct.unpack("<3I12sq", content)
        if version != VERSION:
            others.append(f"tables of tasks of version {version}; this script reads version {VERSION}")
            continue
        newest, slots, *layout = struct.unpack("<Q16I", read(note + 24 + distance, 72))
        while newest:
            newest, *entries = words(newest, slots + 1)
            found += [Task(Layout(*layout), entry) for entry in entries if entry and entry % 2 == 0]
    if len(others) == len(headers):
        raise gdb.GdbError(f"the program has {others[0]}")
    if not found:
        is_core = gdb.selected_inferior().pid == 0 or gdb.selected_inferior().connection.type == "core"
        lacking = ", or the core file lacks the data of the program (/proc/PID/coredump_filter)" if is_core else ""
        others.append(f"started tasks: there are none{lacking}")
    for other in others:
        # A comment to Graphviz.
        print(f"// not shown: {other}")
    return sorted((task for task in found if not task.has_ended), key=lambda task: task.id)


def owner(waits, tasks):
    kind, mark = waits.owner or (None, None)
    return next((task for task in tasks if mark == (task.header if kind == "address" else task.id)), None)


def described(waits, tasks):
    line = waits.name
    if waits.descriptor is not None and waits.descriptor >= 0:
        line += f" {waits.descriptor}"
    if waits.owner:
        line += f" of {owner(waits, tasks) or 'a thread, or an owner that has ended'}"
    arms = ", ".join(described(arm, tasks) for arm in waits.arms)
    return f"{line} ({arms})" if arms else line


def summary(task, tasks):
    line = f"{task} {task.state}"
    if task.wait:
        line += f", waiting for {described(task.wait, tasks)}"
        line += f" at {task.wait.object:#x}" if task.wait.object and task.wait.descriptor is None else ""
    return line


class Suspended(Unwinder):
    """Makes the innermost frame of the selected thread one that a suspended task has called."""

    context = None

    def __call__(self, pending):
        place, self.context = self.context, None
        if not place:
            return None
        names = ("rip", "rsp", "rbp") if pending.architecture().name().startswith("i386") else ("pc", "sp", "x29")
        # With the stack pointer of the task, or its frames would seem to lie on the wrong side of this one.
        info = pending.create_unwind_info(namedtuple("Id", "sp pc")(gdb.Value(place.sp), gdb.Value(place.pc)))
        for name, value in zip(names, place):
            info.add_saved_register(name, gdb.Value(value))
        return info


UNWINDER = Suspended("fibra")
register_unwinder(None, UNWINDER, replace=True)


def print_frames(frame, first=0):
    """Prints the frames from that one outwards. Returns the number of the next one."""
    while frame and frame.pc():
        place = frame.find_sal()
        line = f" ({place.symtab.filename}:{place.line})" if place.symtab else ""
        name = re.sub("::h[0-9a-f]{16}$", "", frame.name() or hex(frame.pc()))
        print(f"    #{first:<3} {name}{line}")
        frame, first = frame.older(), first + 1
    return first


def print_stack(task, tasks):
    """Prints the stack of a task. The selected thread and frame stay."""
    thread, selected = gdb.selected_thread(), gdb.selected_frame()
    try:
        number = 0
        for place in task.contexts:
            if not place.pc:
                print("    the core file lacks the stack: gcore leaves stacks out")
                continue
            UNWINDER.context = place
            gdb.invalidate_cached_frames()
            frame = gdb.newest_frame()
            while frame and (frame.pc(), int(frame.read_register("sp"))) != (place.pc, place.sp):
                frame = frame.older()
            number = print_frames(frame, number)
        if task.state == "running":
            bases = sorted(base for other in tasks for base in other.bases if base)
            for other in gdb.selected_inferior().threads():
                other.switch()
                sp = int(gdb.newest_frame().read_register("sp"))
                if next((base for base in bases if base > sp), None) in task.bases:
                    print_frames(gdb.newest_frame())
    finally:
        UNWINDER.context = None
        gdb.invalidate_cached_frames()
        thread.switch()
        if selected.is_valid():
            selected.select()


def print_graph(tasks):
    """Prints which tasks wait for which objects, and which tasks own those."""
    nodes, edges = {}, {}
    for task in tasks:
        waits = [task.wait, *task.wait.arms] if task.wait else []
        for one in (one for one in waits if one.object):
            place, target = f"o{one.object:x}", owner(one, tasks)
            nodes.setdefault(place, f"{one.name}\n{one.object:#x}")
            arrows = [f"t{task.id} -> {place}"] + ([f"{place} -> t{target.id}"] if target else [])
            edges.update(dict.fromkeys(arrows))
            nodes.update((f"t{other.id}", f"{other}\n{other.state}") for other in (task, target) if other)
    print("digraph waits {")
    for node, label in nodes.items():
        print(f"  {node} [label={json.dumps(label, ensure_ascii=False)}{', shape=box' if node[0] == 'o' else ''}];")
    for edge in edges:
        print(f"  {edge};")
    print("}")


class Fibra(gdb.Command):
    """Shows the tasks of fibra: `fibra tasks`, `fibra task N bt`, `fibra apply all bt`, `fibra graph`."""

    def invoke(self, argument, from_tty):
        tasks, one = all_tasks(), re.fullmatch(r"task (\d+)( bt)?", argument)
        if argument in ("tasks", "apply all bt"):
            chosen = tasks
        elif one:
            chosen = [task for task in tasks if task.id == int(one[1])]
            if not chosen:
                raise gdb.GdbError(f"there is no task with id {one[1]}")
        elif argument == "graph":
            return print_graph(tasks)
        else:
            raise gdb.GdbError(self.__doc__)
        for task in chosen:
            print(("\n" if argument.startswith("apply") else "") + summary(task, tasks))
            if argument.endswith(" bt"):
                print_stack(task, tasks)


Fibra("fibra", gdb.COMMAND_STACK)
