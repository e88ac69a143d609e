# SPDX-License-Identifier: Apache-2.0
"""What openstack-up and openstack-down share: the two services of a directory as
processes.  Each is known by the pid and the start time in DIR/run/NAME.pid."""
import os
import signal
import subprocess
import time

NAMES = ("keystone", "glance")


def born(pid):
    """The start time of a process; None when there is none any more."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            words = stat.read().rsplit(")", 1)[1].split()
    except OSError:
        return None
    return None if words[0] == "Z" else words[19]


def environment():
    """Ours, without what would lead the services to another cloud or through a proxy."""
    keep = {k: v for k, v in os.environ.items()
            if not k.startswith("OS_") and not k.lower().endswith("_proxy")}
    return {**keep, "no_proxy": "*", "PYTHONDONTWRITEBYTECODE": "1"}


class Service:
    def __init__(self, directory, name):
        self.directory, self.name = directory, name
        self.pid_file = f"{directory}/run/{name}.pid"
        self.log = f"{directory}/log/{name}.out"

    def pid(self):
        """Of the running service, else None."""
        try:
            with open(self.pid_file, encoding="ascii") as file:
                pid, start = file.read().split()
        except (FileNotFoundError, ValueError):
            return None
        return int(pid) if born(pid) == start else None

    def start(self, argv):
        with open(self.log, "ab") as log:
            process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       cwd=self.directory, env=environment(),
                                       start_new_session=True)
        with open(self.pid_file, "w", encoding="ascii") as file:
            file.write(f"{process.pid} {born(process.pid)}\n")

    def stop(self, signals=(signal.SIGTERM, signal.SIGKILL)):
        """True when it does not run any more."""
        for number in signals:
            end = time.monotonic() + 5
            if pid := self.pid():
                os.kill(pid, number)
            while self.pid() and time.monotonic() < end:
                time.sleep(0.05)
        if self.pid():
            return False
        if os.path.exists(self.pid_file):
            os.unlink(self.pid_file)
        return True
