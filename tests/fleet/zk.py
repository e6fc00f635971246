"""A small client of ZooKeeper's protocol: one request at a time, no watches, no caches."""
import socket
import struct

CLOSE, CREATE, DELETE, EXISTS, GET, SET = -11, 1, 2, 3, 4, 5
SET_ACL, SYNC, CHILDREN, AUTH = 7, 9, 12, 100
ANYONE = [(31, "world", "anyone")]
NAMES = {-4: "connection lost", -101: "no node", -102: "no authority", -103: "bad version",
         -108: "no children for ephemerals",
         -110: "node exists", -111: "not empty", -112: "session expired",
         -115: "authentication failed"}
ACCOUNT_XID = -4


class Refused(Exception):
    def __init__(self, code, what):
        super().__init__(f"{what}: {NAMES.get(code, code)}")
        self.code = code


class Stat:
    SHAPE = struct.Struct(">qqqqiiiqiiq")

    def __init__(self, reply):
        (self.czxid, self.mzxid, _, _, self.version, _, _, self.owner, _, self.children,
         _) = self.SHAPE.unpack(reply.take(self.SHAPE.size))


class Reply:
    def __init__(self, raw):
        self.raw, self.at = raw, 0

    def take(self, size):
        self.at += size
        if self.at > len(self.raw):
            raise ConnectionError("a short reply")
        return self.raw[self.at - size:self.at]

    def number(self, shape="i"):
        return struct.unpack(">" + shape, self.take(struct.calcsize(">" + shape)))[0]

    def buffer(self):
        return self.take(max(0, self.number()))

    def text(self):
        return self.buffer().decode()


def buffer(data):
    return struct.pack(">i", len(data)) + data


def text(data):
    return buffer(data.encode())


def acl_text(acl):
    return struct.pack(">i", len(acl)) + b"".join(struct.pack(">i", p) + text(s) + text(i) for p,
                                                  s, i in acl)


class Client:
    """A session with one server; with @resume, (id, password), an earlier one is gone on with."""

    def __init__(self, address, timeout_s=20, session_s=10, resume=None):
        self.socket = socket.create_connection(address, timeout_s)
        self.xid = 0
        session, password = resume or (0, bytes(16))
        self._send(struct.pack(">iqiq", 0, 0, int(session_s * 1000),
                               session) + buffer(password) + b"\0")
        reply = Reply(self._receive())
        reply.number()
        self.timeout_ms, self.session = reply.number(), reply.number("q")
        self.password = reply.buffer()
        if self.timeout_ms <= 0:
            self.drop()
            raise Refused(-112, "connect")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _send(self, packet):
        self.socket.sendall(buffer(packet))

    def _receive(self):
        def exactly(size):
            data = b""
            while len(data) < size:
                more = self.socket.recv(size - len(data))
                if not more:
                    raise ConnectionError("the server has closed the connection")
                data += more
            return data
        return exactly(struct.unpack(">i", exactly(4))[0])

    def _ask(self, kind, what, body=b"", xid=None):
        self.xid += 1
        xid = self.xid if xid is None else xid
        self._send(struct.pack(">ii", xid, kind) + body)
        while True:
            reply = Reply(self._receive())
            answered, self.zxid, code = reply.number(), reply.number("q"), reply.number()
            if answered != xid:
                continue
            if code:
                raise Refused(code, what)
            return reply

    def drop(self):
        """Leaves without a word: the session goes on until it expires."""
        self.socket.close()

    def close(self):
        try:
            self._ask(CLOSE, "close")
        except OSError:
            pass
        self.drop()

    def account(self, name, password):
        self._ask(AUTH, "auth", struct.pack(">i", 0) + text("digest") + text(f"{name}:{password}"),
                  ACCOUNT_XID)

    def create(self, path, data=b"", ephemeral=False, sequential=False, acl=None):
        flags = struct.pack(">i", ephemeral | sequential << 1)
        return self._ask(CREATE, f"create {path}",
                         text(path) + buffer(data) + acl_text(acl or ANYONE) + flags).text()

    def ensure(self, path, acl=None):
        """@path and all above it are there."""
        for end in [i for i, c in enumerate(path) if c == "/" and i] + [len(path)]:
            try:
                self.create(path[:end], acl=acl)
            except Refused as error:
                if error.code != -110:
                    raise

    def get(self, path):
        reply = self._ask(GET, f"get {path}", text(path) + b"\0")
        return reply.buffer(), Stat(reply)

    def set(self, path, data, version=-1):
        return Stat(self._ask(SET, f"set {path}",
                              text(path) + buffer(data) + struct.pack(">i", version)))

    def delete(self, path, version=-1):
        self._ask(DELETE, f"delete {path}", text(path) + struct.pack(">i", version))

    def exists(self, path):
        try:
            return Stat(self._ask(EXISTS, f"exists {path}", text(path) + b"\0"))
        except Refused as error:
            if error.code == -101:
                return None
            raise

    def children(self, path):
        reply = self._ask(CHILDREN, f"children {path}", text(path) + b"\0")
        return sorted(reply.text() for _ in range(reply.number()))

    def protect(self, path, acl):
        self._ask(SET_ACL, f"protect {path}", text(path) + acl_text(acl) + struct.pack(">i", -1))

    def sync(self, path="/"):
        self._ask(SYNC, f"sync {path}", text(path))

    def tree(self, path):
        """@path and all below it, parents first."""
        yield path
        try:
            names = self.children(path)
        except Refused:
            names = []
        for name in names:
            yield from self.tree(f"{path.rstrip('/')}/{name}")

    def remove(self, path):
        """@path and all below it; nodes that others removed meanwhile are fine."""
        for node in reversed(list(self.tree(path))):
            try:
                self.delete(node)
            except Refused as error:
                if error.code != -101:
                    raise


def word(address, command, timeout_s=3):
    """The answer to a four letter word, or '' from a server that gives none."""
    try:
        with socket.create_connection(address, timeout_s) as connection:
            connection.settimeout(timeout_s)
            connection.sendall(command.encode())
            answer = b""
            while more := connection.recv(65536):
                answer += more
            return answer.decode(errors="replace")
    except OSError:
        return ""


def figures(address):
    """The values of `mntr`, by name."""
    return dict(line.split("\t", 1) for line in word(address, "mntr").splitlines() if "\t" in line)
