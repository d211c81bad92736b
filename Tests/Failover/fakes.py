"""A server in place of Apple's push service or of the mail webhook: fakes.py PORT CERTIFICATE KEY FILE

It appends the id of each request that it accepts to the file. After SIGUSR1 it responds 500 to all, until SIGUSR2.
"""
import http.server
import signal
import ssl
import sys
import threading

is_failing = threading.Event()
lock = threading.Lock()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):  # pylint: disable=invalid-name
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if not is_failing.is_set():
            with lock, open(sys.argv[4], "a", encoding="utf-8") as file:
                file.write(f"{self.headers.get('apns-id') or self.headers.get('webhook-id')}\n")
        self.send_response(500 if is_failing.is_set() else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


signal.signal(signal.SIGUSR1, lambda *_: is_failing.set())
signal.signal(signal.SIGUSR2, lambda *_: is_failing.clear())
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[2], sys.argv[3])
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
server.daemon_threads = True
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
server.serve_forever()
