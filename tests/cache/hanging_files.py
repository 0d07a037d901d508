"""A FUSE file system whose only file can be opened, and then answers nothing any more. Needs root."""

import ctypes
import os
import signal
import stat
import struct
from pathlib import Path

LOOKUP, GETATTR, OPEN, STATFS, INIT = 1, 3, 14, 17, 26
SIZE = 1 << 20
libc = ctypes.CDLL(None, use_errno=True)


def attributes(node):
    mode, size = (stat.S_IFDIR | 0o755, 4096) if node == 1 else (stat.S_IFREG | 0o755, SIZE)
    return struct.pack("<6Q3I7I", node, size, 8, 1, 1, 1, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


class HangingFiles:
    """Use in a `with` statement; `file` is the file. At the end all who wait for it get an error."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.folder.mkdir()
        self.file = self.folder / "program"

    def __enter__(self):
        device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
        if libc.mount(b"hanging", bytes(self.folder), b"fuse", 0, options) != 0:
            raise OSError(ctypes.get_errno(), "mount")
        self.server = os.fork()
        if self.server == 0:
            try:
                self.serve(device)
            finally:
                os._exit(0)
        os.close(device)
        return self

    def __exit__(self, *_):
        os.kill(self.server, signal.SIGKILL)
        os.waitpid(self.server, 0)
        libc.umount2(bytes(self.folder), 2)

    def serve(self, device):
        opened = False
        while True:
            request = os.read(device, 1 << 18)
            _, operation, unique, node = struct.unpack_from("<IIQQ", request)
            if operation == INIT:
                answer = struct.pack("<4I2H2I2H8I", 7, 31, 65536, 0, 8, 8, 65536, 1, 1, 0, *[0] * 8)
            elif opened:
                continue
            elif operation == LOOKUP:
                answer = struct.pack("<4Q2I", 2, 0, 0, 0, 0, 0) + attributes(2)
            elif operation == GETATTR:
                answer = struct.pack("<QII", 0, 0, 0) + attributes(node)
            elif operation == OPEN:
                answer = struct.pack("<QII", 1, 0, 0)
                opened = True
            elif operation == STATFS:
                answer = bytes(80)
            else:
                os.write(device, struct.pack("<IiQ", 16, -38, unique))
                continue
            os.write(device, struct.pack("<IiQ", 16 + len(answer), 0, unique) + answer)
