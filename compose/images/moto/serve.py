"""Serves moto's DynamoDB.

moto checks the condition of a write and then writes, without a lock, on a thread for each
connection: two writers at once can both find their condition true. DynamoDB carries out one
write of an item at a time, so requests take turns here. A request takes its turn when it has
been read to its end: a client that is slow, or stopped, keeps nobody waiting.
"""

import io
import sys
import threading

from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from werkzeug.serving import make_server

MAX_BODY_BYTES = 16 * 1024 * 1024

dispatcher = DomainDispatcherApplication(create_backend_app)
turn = threading.Lock()


def in_turn(environ, start_response):
    length = min(int(environ.get("CONTENT_LENGTH") or 0), MAX_BODY_BYTES)
    environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(length))
    with turn:
        return [b"".join(dispatcher(environ, start_response))]


class Handler(MotoRequestHandler):
    def log_request(self, *_):
        pass


host, port = sys.argv[1].rsplit(":", 1)
server = make_server(host, int(port), in_turn, threaded=True, request_handler=Handler)
# Otherwise the first requests would wait for these to be imported.
for service in ["dynamodb", "dynamodbstreams"]:
    dispatcher.app_instances[service] = create_backend_app(service)
print(f"moto ready at {sys.argv[1]}", flush=True)
server.serve_forever()
