"""Tar files of made-up members."""

import io
import tarfile


def tar_bytes(members, compression="", form=tarfile.PAX_FORMAT, **fields):
    """A tar file of `members`, names and their bytes, each with the fields of `tarfile.TarInfo`."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w" + compression, format=form) as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            for field, value in fields.items():
                setattr(info, field, value)
            tar.addfile(info, io.BytesIO(content))
    return stream.getvalue()
