"""
Scenarios of a fleet whose hosts reach ZooKeeper through stunnel, with the files of operators/tls.
"""
import contextlib
import os
import re
import socket
import ssl
import subprocess
import tempfile
import time

from ensemble import Ensemble
from host import RIGHT_S, eventually, expect
from links import CENTRE, Proxy, command
from scenarios import beside, stopped_at

OPERATORS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../operators/tls")
SECURE_PORT = 2281
RATE = 100


class Authority:
    """Signs certificates. Files are NAME.pem, a certificate and its key, and ca.pem."""

    def __init__(self, scene):
        self.folder = tempfile.mkdtemp(dir=scene.folder)
        self.openssl("req", "-x509", "-days", "2", "-subj", "/CN=authority", "-newkey", "rsa:2048",
                     "-nodes", "-keyout", "ca.key", "-out", "ca.pem")

    def openssl(self, *words):
        command("sh", "-c", 'cd "$0" && exec openssl "$@"', self.folder, *words)

    def certificate(self, name):
        """Its path. The name is also the one that the other end checks."""
        paths = [f"{self.folder}/{name}{end}" for end in (".key", ".req", ".crt", ".pem")]
        key, request, signed, both = paths
        self.openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}",
                     "-addext", f"subjectAltName=DNS:{name}", "-keyout", key, "-out", request)
        self.openssl("x509", "-req", "-days", "2", "-in", request, "-CA", "ca.pem", "-CAkey",
                     "ca.key", "-CAcreateserial", "-copy_extensions", "copy", "-out", signed)
        with open(both, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            for path in (signed, key):
                with open(path) as part:
                    file.write(part.read())
        return both

    @property
    def path(self):
        return f"{self.folder}/ca.pem"


def configuration(name, replaced):
    """The text of a file of operators/tls, in which each of these paths is another one."""
    with open(f"{OPERATORS}/{name}") as file:
        text = file.read()
    for old, new in replaced.items():
        expect(old in text, f"{name} has no '{old}'")
        text = text.replace(old, new)
    return text


def tls_servers(scene, authority, first, count=3):
    """
    Servers with the settings for TLS, called zk1 to zk3; their plain port is for the test alone.
    """
    def settings(number):
        return configuration("zoo.cfg", {
            "/etc/zookeeper/tls/server.pem": authority.certificate(f"zk{number}"),
            "/etc/zookeeper/tls/ca.pem": authority.path})

    ensemble = Ensemble(scene.folder, count, first, settings)
    scene.ends.append(ensemble.remove)
    for server in ensemble:
        server.start()
    ensemble.await_quorum(count)
    return ensemble


def secure(ensemble):
    """The addresses at which hosts come in."""
    return [(server.place.address, SECURE_PORT) for server in ensemble]


class Tunnel:
    """
    A stunnel on a host, to servers or to what stands before them, with this certificate. They have
    to have these @names.
    """

    def __init__(self, scene, place, addresses, certificate, authority,
                 names=("zk1", "zk2", "zk3")):
        self.place, self.process, self.told = place, None, ""
        self.file = f"{scene.folder}/stunnel{place.number}"
        replaced = {"/etc/stunnel/host.pem": certificate, "/etc/stunnel/ca.pem": authority.path}
        for n, (address, name) in enumerate(zip(addresses, names), 1):
            replaced[f"= zk{n}:2281"] = f"= {address[0]}:{address[1]}"
            replaced[f"checkHost = zk{n}"] = f"checkHost = {name}"
        text = configuration("stunnel.conf", replaced)
        with open(self.file, "w") as file:
            file.write(re.sub(rf"(?s)\[zk{len(addresses) + 1}\].*", "", text))
        self.start()
        scene.ends.append(self.kill)

    def start(self):
        # As systemd has it, standard error is a socket, which cannot be opened by a name.
        self.journal, log = socket.socketpair()
        with log:
            self.process = subprocess.Popen(self.place.within("stunnel4", self.file),
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def said(self):
        with contextlib.suppress(BlockingIOError):
            while data := self.journal.recv(65536, socket.MSG_DONTWAIT):
                self.told += data.decode(errors="replace")
        return self.told

    def kill(self):
        self.process.kill()
        self.process.wait()


def behind_tunnels(scene, fleet, addresses, certificate, authority, joins=True, **names):
    """A host that reaches the servers through tunnels only."""
    ends = ",".join(f"127.0.0.1:{2181 + n}" for n in range(len(addresses)))
    host = fleet.host(start=False, source=f"zk://{ends}{fleet.path}")
    host.tunnel = Tunnel(scene, host.place, addresses, certificate, authority, **names)
    # A busy machine may take longer for the first connection than a mount waits for it.
    host.start("nowait")
    if joins:
        eventually(lambda: host.status()["coordinator"] == "ready", f"{host.name} joins")
    return host


def server_of(host, ensemble):
    """The server at the other end of the tunnel that the host has its session through."""
    port = re.findall(r"connected to ZooKeeper at 127\.0\.0\.1:(\d+)", host.said())[-1]
    return ensemble.servers[int(port) - 2181]


class Eavesdropper(Proxy):
    """Hears all that goes through."""

    def __init__(self, scene, target):
        self.heard = bytearray()
        super().__init__(target)
        scene.ends.append(self.close)

    def hear(self, data):
        self.heard += data


def stays_out(host, fleet, servers):
    """The host has no session with any of so many servers, and nothing is granted there."""
    def refused():
        return {name for name, line in re.findall(r"(?m)\[(\d+)\](.*)$", host.tunnel.said())
                if re.search(r"error|failed|alert|rejected", line)}
    eventually(lambda: len(refused()) >= servers,
               lambda: f"stunnel refuses: {host.tunnel.said()[-400:]}")
    expect(host.status()["coordinator"] != "ready", "a session without a certificate")
    expect(not host.there("l"), "the limiters without a certificate")
    expect(not fleet.granted([host], 60), "tokens without a certificate")


def answers(address, authority, certificate=None):
    """Whether a server answers by TLS what it answers anybody who may come in."""
    context = ssl.create_default_context(cafile=authority.path)
    context.check_hostname = False
    if certificate:
        context.load_cert_chain(certificate)
    with contextlib.suppress(OSError), socket.create_connection(address, 20) as plain:
        with context.wrap_socket(plain) as link:
            link.sendall(b"ruok")
            return link.recv(4) == b"imok"
    return False


@beside
def hosts_behind_stunnel_share_go_on_by_another_server_and_an_eavesdropper_reads_no_name(scene):
    authority = Authority(scene)
    ensemble = tls_servers(scene, authority, 211)
    secret = [Eavesdropper(scene, address) for address in secure(ensemble)]
    plain = Eavesdropper(scene, (ensemble.servers[0].place.address, 2181))
    fleet = scene.fleet(ensemble=ensemble)
    certificate = authority.certificate("host")
    for _ in range(2):
        behind_tunnels(scene, fleet, [each.address for each in secret], certificate, authority)
    fleet.limiter(RATE, 10)
    fleet.make("name-of-a-limiter", rate="5/s")
    fleet.load()
    fleet.await_rate(RATE)
    # A host without a tunnel shows that the eavesdropper would hear it.
    control = fleet.host(source=f"zk://{CENTRE}:{plain.address[1]}{fleet.path}")
    eventually(lambda: control.there("name-of-a-limiter"), "the host without a tunnel joins")
    one = fleet.hosts[0]
    killed = server_of(one, ensemble)
    killed.kill()
    eventually(lambda: server_of(one, ensemble) is not killed, "a session with another server")
    fleet.await_rate(RATE, fleet.hosts[:2], what="without one of the servers")
    one.insist("write", "l/burst", "11")
    for word in (b"name-of-a-limiter", b"/fleet"):
        expect(word in plain.heard, f"nothing of '{word.decode()}' is heard without a tunnel")
        for each in secret:
            expect(word not in each.heard, f"'{word.decode()}' is heard through a tunnel")
    expect(sum(len(each.heard) for each in secret) > 1000, "nothing goes through the tunnels")


@beside
def a_wrong_certificate_gets_nowhere(scene):
    authority, strange = Authority(scene), Authority(scene)
    ensemble = tls_servers(scene, authority, 215)
    fleet = scene.fleet(ensemble=ensemble)
    certificate = authority.certificate("host")
    behind_tunnels(scene, fleet, secure(ensemble), certificate, authority)
    fleet.limiter(RATE, 10)
    for address in secure(ensemble):
        expect(answers(address, authority, certificate), f"no answer of {address}")
        expect(not answers(address, authority), f"{address} answers without a certificate")
        expect(not answers(address, authority, strange.certificate("host")),
               f"{address} answers a certificate of another authority")
    # A host with a certificate of another authority, and one whose servers have other names.
    stranger = behind_tunnels(scene, fleet, secure(ensemble), strange.certificate("host"),
                              authority, joins=False)
    misled = behind_tunnels(scene, fleet, secure(ensemble), authority.certificate("host2"),
                            authority, joins=False, names=("db1", "db2", "db3"))
    fleet.load(fleet.hosts[0])
    fleet.await_rate(RATE)
    for host in (stranger, misled):
        stays_out(host, fleet, len(ensemble.servers))


@beside
def a_stunnel_that_dies_is_a_cut_link(scene):
    authority = Authority(scene)
    single = tls_servers(scene, authority, 218, 1)
    fleet = scene.fleet(ensemble=single)
    for name in ("host1", "host2"):
        behind_tunnels(scene, fleet, secure(single), authority.certificate(name), authority)
    fleet.limiter(RATE, 10)
    fleet.load()
    fleet.await_rate(RATE)
    one, other = fleet.hosts
    cut = time.monotonic()
    one.tunnel.kill()
    fleet.await_rate(RATE, [other], what="the other host has it all")
    stopped_at(fleet, one, cut, RIGHT_S)
    one.tunnel.start()
    eventually(lambda: fleet.rate([one]) > 0, "the host grants again when its tunnel is back")
    fleet.await_rate(RATE)
