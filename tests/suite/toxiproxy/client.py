"""The package toxiproxy-python against the server at this port."""

import socket
import sys
import threading
import time

from toxiproxy import Toxiproxy
from toxiproxy.exceptions import InvalidToxic, NotFound, ProxyExists


def echo():
    """The address of a server that says everything back."""
    listener = socket.create_server(("127.0.0.1", 0))

    def answer(client):
        while data := client.recv(65536):
            client.sendall(data)
        client.close()

    def serve():
        while True:
            client, _ = listener.accept()
            threading.Thread(target=answer, args=(client,), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    return "127.0.0.1:%d" % listener.getsockname()[1]


def connect(proxy):
    host, port = proxy.listen.rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=10)


def ping(stream):
    """How long a byte takes there and back."""
    start = time.monotonic()
    stream.sendall(b"x")
    assert stream.recv(1) == b"x"
    return time.monotonic() - start


def refused(kind, call):
    try:
        call()
    except kind as error:
        return error.args[0]
    raise AssertionError("not refused")


server = Toxiproxy()
server.update_api_consumer("127.0.0.1", int(sys.argv[1]))
assert server.running()
assert server.version() == b'{"version": "2.13.0"}\n', server.version()
assert server.proxies() == {}

upstream = echo()
proxy = server.create(upstream=upstream, name="p")
assert proxy.enabled and proxy.upstream == upstream
assert not proxy.listen.endswith(":0")
refused(ProxyExists, lambda: server.create(upstream=upstream, name="p"))
assert list(server.proxies()) == ["p"]
assert server.get_proxy("p").listen == proxy.listen
assert server.get_proxy("q") is None

stream = connect(proxy)
ping(stream)
proxy.add_toxic(type="latency", attributes={"latency": 1000, "jitter": 0})
assert ping(stream) >= 1
latency = proxy.get_toxic("latency_downstream")
assert latency.type == "latency" and latency.stream == "downstream"
assert latency.toxicity == 1 and latency.attributes["latency"] == 1000
proxy.add_toxic(name="slow", type="bandwidth", stream="upstream", attributes={"rate": 5})
assert list(proxy.toxics()) == ["slow", "latency_downstream"]
assert proxy.destroy_toxic("latency_downstream")
assert proxy.destroy_toxic("slow")
assert ping(stream) < 1
said = refused(InvalidToxic, lambda: proxy.add_toxic(type="nonsense"))
assert said == b'{"error":"invalid toxic type","status":400}\n', said
said = refused(NotFound, lambda: proxy.destroy_toxic("nothing"))
assert said == b'{"error":"toxic not found","status":404}\n', said

with proxy.down():
    assert stream.recv(1) == b"", "the connection is closed"
    try:
        connect(proxy)
        raise AssertionError("not refused")
    except ConnectionRefusedError:
        pass
stream = connect(proxy)
ping(stream)

proxy.add_toxic(type="bandwidth", attributes={"rate": 0})
stream.sendall(b"held")
server.reset()
assert stream.recv(4) == b"held"
assert proxy.toxics() == {}

made = server.populate(
    [
        {"name": "p", "upstream": upstream, "listen": proxy.listen},
        {"name": "q", "upstream": upstream, "listen": "127.0.0.1:0"},
    ]
)
assert [one.name for one in made] == ["q"]
assert ping(connect(made[0])) < 5
server.destroy_all()
assert server.proxies() == {}
print("all well")
