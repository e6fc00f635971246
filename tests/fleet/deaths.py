"""
The watch of tests/harness/deaths/deaths.sh, for scripts: deaths of servers that a keeper hides,
and reports of sanitizers.
"""
import glob
import os
import re
import subprocess

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                      "../harness/deaths/deaths.c")


def library(folder):
    return f"{folder}/deaths.so"


def build(folder):
    """Makes what is preloaded, see deaths.c."""
    subprocess.run(["cc", "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-fPIC", "-shared", "-o",
                    library(folder),
                    SOURCE], check=True, timeout=60)


class Watch:
    """Over the daemons that are started with `environment`; its files are in @folder, a new one."""

    def __init__(self, program, folder):
        self.folder, self.file = folder, f"{folder}/deaths"
        self.asked = []  # regular expressions
        os.mkdir(folder)
        os.chmod(folder, 0o1777)  # for servers of every user
        open(self.file, "w").close()
        os.chmod(self.file, 0o666)
        log = f"log_path={folder}/report"
        self.environment = {**os.environ, "DEATHS": self.file, "LD_PRELOAD": program}
        for name, more in (("ASAN", ":verify_asan_link_order=0"), ("TSAN", ":halt_on_error=1"),
                           ("UBSAN", ":print_stacktrace=1:halt_on_error=1")):
            before = os.environ.get(f"{name}_OPTIONS")
            self.environment[f"{name}_OPTIONS"] = (before + ":" if before else "") + log + more

    def death(self, regex):
        """A server is going to die so, as the lines of deaths.c are; asked for by the test."""
        self.asked.append(regex)

    def faults(self):
        """Deaths that were not asked for, those asked for that did not come, and the reports."""
        with open(self.file) as file:
            deaths = file.read().splitlines()
        found = [f"a server died, which the test did not ask for: {line}" for line in deaths
                 if not any(re.fullmatch(regex, line) for regex in self.asked)]
        found += [f"the death '{regex}' was asked for and did not come" for regex in self.asked
                  if not any(re.fullmatch(regex, line) for line in deaths)]
        for report in glob.glob(f"{self.folder}/report*"):
            with open(report, errors="replace") as file:
                found.append(file.read())
        return found
