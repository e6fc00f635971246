"""Between hosts and ZooKeeper servers: hands on what they say, and counts what is asked."""
import collections
import contextlib
import socket
import struct
import threading

# Kinds of request, of ZooKeeper's protocol.
WRITES = {1, 2, 5, 7, 14, 15, 20, 21}  # create, delete, set, set an ACL, multi, and newer forms
READS = {3, 4, 6, 22, 107}  # exists, get, get an ACL, multi of reads, how many children
LISTS = {8, 12, 104}  # children
HEADER = struct.Struct(">iii")  # length, number, kind
CHUNK = 65536


class Wire:
    """
    A door in front of each server; `names` is for a source, `kinds` are the requests counted,
    `bytes` go both ways.
    """

    def __init__(self, addresses):
        self.kinds, self.bytes, self.lock = collections.Counter(), 0, threading.Lock()
        self.doors, self.open = [], []
        for address in addresses:
            door = socket.create_server(("127.0.0.1", 0))
            self.doors.append(door)
            threading.Thread(target=self.accept, args=(door, address), daemon=True).start()
        self.names = ",".join(f"127.0.0.1:{door.getsockname()[1]}" for door in self.doors)

    def accept(self, door, address):
        with contextlib.suppress(OSError):
            while True:
                host, _ = door.accept()
                try:
                    server = socket.create_connection(address, 5)
                except OSError:
                    host.close()
                    continue
                server.settimeout(None)
                for one in (host, server):
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.open += [host, server]
                for source, sink, counts in ((host, server, True), (server, host, False)):
                    threading.Thread(target=self.hand_on, args=(source, sink, counts),
                                     daemon=True).start()

    def hand_on(self, source, sink, counts):
        rest, first = b"", True
        with contextlib.suppress(OSError):
            while True:
                data = source.recv(CHUNK)
                if not data:
                    break
                sink.sendall(data)
                with self.lock:
                    self.bytes += len(data)
                if counts:
                    rest, first = self.count(rest + data, first)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def count(self, data, first):
        """Counts whole messages; gives what is left. The first one asks for a session."""
        while len(data) >= HEADER.size:
            length, _, kind = HEADER.unpack_from(data)
            if len(data) < length + 4:
                break
            if not first:
                with self.lock:
                    self.kinds[kind] += 1
            data, first = data[length + 4:], False
        return data, first

    def asked(self):
        """(writes, reads, lists) so far."""
        with self.lock:
            return tuple(sum(self.kinds[kind] for kind in kinds)
                         for kinds in (WRITES, READS, LISTS))

    def close(self):
        for end in (*self.doors, *self.open):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
