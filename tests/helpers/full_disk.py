"""A disk that is full: files of a child process may not grow beyond so many bytes."""

import os
import resource
import signal

from forked import forked


def error_on_full_disk(work, room):
    """The name and text of what `work` raises in a child whose files end after `room` bytes."""
    reading, writing = os.pipe()

    def limited():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
        try:
            work()
        except BaseException as error:
            os.write(writing, f"{type(error).__name__}: {error}".encode())

    child = forked(limited)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as stream:
        return stream.read().decode()
