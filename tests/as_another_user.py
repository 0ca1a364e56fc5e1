"""Runs the ``main`` of a Python file as the user nobody. A program, started by root: FILE.

The file is loaded before that, with all that it imports: Python, or the file, may be in a folder that the other user
cannot read.
"""

import os
import pwd
import runpy
import sys


def become_another_user() -> None:
    "".encode("idna")  # loaded now, for the same reason
    nobody = pwd.getpwnam("nobody")
    os.setgroups([])
    os.setgid(nobody.pw_gid)
    os.setuid(nobody.pw_uid)


if __name__ == "__main__":
    loaded = runpy.run_path(sys.argv[1])
    become_another_user()
    loaded["main"]()
