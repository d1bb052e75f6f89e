"""PyTorch's package is linked against gigabytes of CUDA libraries. On a machine without them, empty libraries of the same
names take their place: nothing in them is ever called, because no tensor leaves the CPU. Needs cc, ldd and nm."""

import collections
import pathlib
import re
import subprocess
import sys
import tempfile

NAMES = re.compile(r"^(cublas|cudnn|cufft|cusolver|cusparse|nccl|nvrtc|nvshmem|cu[A-Z](?!ile))", re.IGNORECASE)


def lines(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def undefined(libraries):
    """Names by the version that they are asked for with; the empty version where there is none."""
    found = collections.defaultdict(set)
    for library in libraries:
        for line in lines("nm", "-D", "--undefined-only", str(library)):
            name, _, version = line.split()[-1].partition("@")
            found[version.lstrip("@")].add(name)
    return found


def main(folder):
    libraries = sorted(path for path in folder.glob("*.so"))
    missing = {line.split()[0] for library in libraries for line in lines("ldd", str(library)) if "not found" in line}
    missing = sorted(name for name in missing if not (folder / name).exists())
    wanted = {
        version: sorted(name for name in names if version in missing or NAMES.match(name))
        for version, names in sorted(undefined(libraries).items())
        # A version named as a library that is there belongs to that one.
        if version in missing or not version.startswith(("lib", "GLIBC", "CXXABI", "GCC", "GOMP", "OMP"))
    }
    with tempfile.TemporaryDirectory() as scratch:
        source, script = pathlib.Path(scratch) / "stand_in.c", pathlib.Path(scratch) / "versions"
        names = sorted({name for group in wanted.values() for name in group})
        source.write_text("".join(f"int {name}(void) {{ return 1; }}\n" for name in names))
        script.write_text(
            "".join(f"{version} {{ {'; '.join(group)}; }};\n" for version, group in wanted.items() if version and group)
        )
        for name in missing:
            flags = [f"-Wl,-soname,{name}", f"-Wl,--version-script={script}"]
            subprocess.run(
                ["cc", "-shared", "-fPIC", "-w", *flags, "-o", str(folder / name), str(source)], check=True
            )
    print(f"stand-ins with {len(names)} functions: {' '.join(missing)}")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
