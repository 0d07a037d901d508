"""Workers against daemons of the tests' own: the session, images, and everything a daemon can do wrong.

Programs run natively, then under phybin without a daemon, cold (the daemon has no images and collects the entry
points) and warm (with images that phybin made of them). PHYBIN and QEMU_CPU choose another worker and CPU.
"""

import os
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "worker"))
import hostile  # noqa: E402
import images  # noqa: E402
import session  # noqa: E402
from harness import Bench  # noqa: E402

PHYBIN = Path(os.environ.get("PHYBIN", HERE.parent.parent / "build/arm64/worker/phybin")).resolve()


class WorkerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        os.environ.pop("PHYBIN_OPTIONS", None)
        os.environ.setdefault("QEMU_CPU", "cortex-a72")
        os.environ["LC_ALL"] = "C"
        cls.work = Path(tempfile.mkdtemp(prefix="phybin-cache-test-"))
        cls.bench = Bench(PHYBIN, cls.work)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.work, ignore_errors=True)

    def setUp(self):
        self.bench.begin()


def tests_of(module, name):
    """A class with a method for each function in the module's TESTS."""
    methods = {"test_" + f.__name__: (lambda self, f=f: f(self.bench)) for f in module.TESTS}
    for function in module.TESTS:
        methods["test_" + function.__name__].__doc__ = function.__doc__
    return type(name, (WorkerTest,), methods)


Session = tests_of(session, "Session")
HostileDaemon = tests_of(hostile, "HostileDaemon")
Images = tests_of(images, "Images")

