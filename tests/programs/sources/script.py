# A walk through the standard library; prints only what does not depend on machine or time.
import asyncio, collections, ctypes, decimal, fractions, functools, gzip, hashlib, io, itertools, json, math, multiprocessing, os
import pickle, platform, queue, random, re, signal, socket, sqlite3, statistics, string, struct, subprocess, sys, tempfile, textwrap
import threading, time, unicodedata, uuid, zlib, lzma, bz2, array, heapq, bisect, datetime, csv, xml.etree.ElementTree as tree

random.seed(1)
print(random.random(), random.gauss(0, 1), random.sample(range(1000), 5))
print(hashlib.sha256(b"x" * 1000).hexdigest(), hashlib.md5(b"y").hexdigest(), hashlib.blake2b(b"z").hexdigest()[:20])
print(json.dumps({"a": [1, 2.5, None, True], "b": "\u00e4"}, sort_keys=True), json.loads("[1e-300, 12345678901234567890]"))
print(decimal.Decimal(1) / decimal.Decimal(7), fractions.Fraction(1, 3) ** 5, math.gamma(5.5), math.erf(0.3), 2 ** 200)
print(re.findall(r"(\w+)@(\w+)", "a@b c@d"), textwrap.fill("lorem ipsum " * 6, 30))
data = bytes(range(256)) * 50
for module in zlib, gzip, bz2, lzma:
    assert module.decompress(module.compress(data)) == data
print(zlib.crc32(data), struct.pack("<hIqd", -2, 7, -9, 1.5).hex())
print(sorted(collections.Counter("mississippi").items()), statistics.stdev([1, 2, 3, 4, 10]))
print(list(itertools.islice(itertools.permutations("abc"), 4)), functools.reduce(lambda a, b: a * b, range(1, 15)))
connection = sqlite3.connect(":memory:")
connection.execute("create table t(a, b)")
connection.executemany("insert into t values(?, ?)", [(i, i * i) for i in range(100)])
print(connection.execute("select sum(b), max(a) from t where a % 3 = 0").fetchone())
print(pickle.loads(pickle.dumps({"k": (1, 2.5, "s")})), unicodedata.name("\u00df"), uuid.UUID(int=5))
print(tree.fromstring("<a><b c='1'/></a>").find("b").get("c"), datetime.datetime(2024, 2, 29).isoformat())

results = queue.Queue()
threads = [threading.Thread(target=lambda n=n: results.put(sum(range(n * 1000)))) for n in range(6)]
[t.start() for t in threads]
[t.join() for t in threads]
print(sorted(results.queue))


async def job(n):
    await asyncio.sleep(0.01)
    return n * n


async def jobs():
    return await asyncio.gather(*(job(n) for n in range(5)))


print(asyncio.run(jobs()))
a, b = socket.socketpair()
a.sendall(b"over a socket")
print(b.recv(100))
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "f")
    with open(path, "w") as f:
        f.write("text\n" * 10)
    print(os.path.getsize(path), sorted(os.listdir(folder)), oct(os.stat(path).st_mode))
got = []
signal.signal(signal.SIGUSR1, lambda *_: got.append(1))
os.kill(os.getpid(), signal.SIGUSR1)
time.sleep(0.01)
print(got, platform.machine(), sys.byteorder, ctypes.CDLL(None).abs(-5))
print(subprocess.run(["/bin/echo", "child"], capture_output=True).stdout, subprocess.call(["false"]))
try:
    subprocess.run(["/nonexistent/program"])
except FileNotFoundError as error:
    print(error.errno)
if "processes" in sys.argv:
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map(math.factorial, range(10)))
