# SPDX-License-Identifier: Apache-2.0
"""Runs a kind of call of instructions.c below valgrind's callgrind, which counts without noise.

Only counted_calls() and its callees are counted, on their thread: neither worker threads nor the rest
of the program.  Processes of a probe run outside of valgrind.
"""
import collections
import os
import pathlib
import platform
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
POCL, STUB, NVIDIA = "Portable Computing Language", "stub", "stub as NVIDIA"  # the drivers
OURS = ("libCLImportMemoryLayer.so", "libclimport.so")  # how the names of our libraries begin
RECORD = re.compile(r"^(c?(?:ob|fl|fi|fe|fn)|calls)=(?:\((\d+)\))? ?(.*)", re.M)

# calls: (library, file, function) -> calls
Counted = collections.namedtuple("Counted", "instructions calls")


def environment(build, driver, layer):
    """On the stub, memfds are dma-bufs.  Results are kept in the build."""
    env = dict(os.environ, OPENCL_LAYERS=layer, XDG_CACHE_HOME=f"{build}/bench/cache")
    if driver == POCL:
        return env
    env.update(OCL_ICD_VENDORS=f"{build}/tests/stub/vendors", LD_PRELOAD=f"{build}/bench/libbench_fakedmabuf.so")
    if driver == NVIDIA:
        env.update(STUB_OPAQUE="1", STUB_COPYING="1", FAKE_RM_UUID="a0", FAKE_RM_EXPORTER="udmabuf",
                   LD_PRELOAD=f"{build}/tests/fake/libfakerm.so:{env['LD_PRELOAD']}")
    return env


def calls_of(profile):
    """callgrind names an object, file or function once, and then gives its number."""
    names, place, functions, calls = {}, {}, {}, collections.Counter()
    for what, number, rest in RECORD.findall(profile):
        if what == "calls":
            calls[called] += int(rest.split()[0])
            continue
        space = {"ob": "ob", "fn": "fn"}.get(what.lstrip("c"), "fl")
        if rest:
            names[space, number] = rest
        if what == "cfn":
            called = number
        elif what == "fn":
            functions[number] = (os.path.basename(place["ob"]), place["fl"], names[space, number])
        elif what in ("ob", "fl"):
            place[space] = names[space, number]
    return {functions[number]: count for number, count in calls.items() if count and number in functions}


def program(build, kind, count, driver, layer, *below):
    """The layer is that of the build, unless another is named; "" is none.  Returns the driver's version."""
    env = environment(build, driver, f"{build}/icd/libCLImportMemoryLayer.so" if layer is None else layer)
    env["CLIMPORT_PROBE"] = "here"  # valgrind starts no process as climport-probe is started
    return subprocess.run([*below, f"{build}/bench/climport-bench", "--platform", driver.split()[0],
                           "--instructions", f"{kind}:{count}"],
                          env=env, check=True, text=True, stdout=subprocess.PIPE, timeout=600).stdout.strip()


def warm(build, kind, driver, layer=None):
    """Leaves what PoCL compiles, which may differ on valgrind's processor."""
    run(build, kind, 1, driver, layer)
    return program(build, kind, 1, driver, layer)


def run(build, kind, count, driver, layer=None, alone=False):
    """@alone: the last of the calls, which counted_calls() makes one by one, on their thread.  Not by --toggle-collect,
    which leaves out instructions and still counts calls: those between, and those of other threads."""
    profile = pathlib.Path(build, "bench/callgrind.out")
    options = ["--separate-threads=yes", "--dump-before=counted_calls", "--dump-after=counted_calls"]
    program(build, kind, count, driver, layer, "valgrind", "--quiet", "--tool=callgrind",
            f"--callgrind-out-file={profile}", *(options if alone else ["--toggle-collect=counted_calls"]))
    text = pathlib.Path(f"{profile}.{2 * count}-01" if alone else profile).read_text()
    return Counted(int(re.search(r"(?m)^(?:totals|summary): (\d+)", text)[1]), calls_of(text))


def described(*tools):
    """The commit, the machine, and the versions of tools."""
    def said(*command):
        return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout.split("\n")[0]
    commit = said("git", "-C", str(ROOT), "-c", "safe.directory=*", "describe", "--always", "--dirty", "--exclude=*")
    versions = "; ".join(said(tool, "--version") for tool in tools)
    return f"Commit {commit}; {platform.machine()}, {os.cpu_count()} processors; {versions}".rstrip("; ") + "."
