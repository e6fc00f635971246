"""
A headless Chromium, by the Chrome DevTools Protocol over a pair of pipes: no port, no library.
"""
import base64
import json
import os
import select
import subprocess
import time

HANG_S = 60

FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
         "--no-first-run", "--disable-extensions", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--mute-audio", "--hide-scrollbars",
         "--remote-debugging-pipe"]


class Browser:
    """
    A browser with one page, run by the command @within. @complaints has the messages of its
    console and its log.
    """

    def __init__(self, directory, within=()):
        to_browser, from_browser = os.pipe(), os.pipe()

        def place():
            # The browser reads commands from 3 and writes answers to 4.
            ends = [os.dup(to_browser[0]), os.dup(from_browser[1])]
            high = [os.dup2(end, 60 + i) for i, end in enumerate(ends)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        with open(f"{directory}/chromium.log", "wb") as log:
            self.process = subprocess.Popen(
                [*within, "chromium", *FLAGS, f"--user-data-dir={directory}/profile",
                 "about:blank"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=place,
                close_fds=False, env={**os.environ, "HOME": directory})
        os.close(to_browser[0])
        os.close(from_browser[1])
        self.writer, self.reader = to_browser[1], from_browser[0]
        self.rest, self.number, self.session, self.complaints = b"", 0, None, []
        pages = self.call("Target.getTargets")["targetInfos"]
        target = next(page["targetId"] for page in pages if page["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in "Page", "Runtime", "Log":
            self.call(domain + ".enable")

    def read(self, until_s):
        """Returns the next message."""
        while b"\0" not in self.rest:
            if not select.select([self.reader], [], [], max(until_s - time.monotonic(), 0))[0]:
                raise TimeoutError("the browser does not answer")
            got = os.read(self.reader, 1 << 20)
            if not got:
                raise EOFError("the browser has ended")
            self.rest += got
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def note(self, message):
        """Keeps what the console and the log are told."""
        parameters = message.get("params", {})
        if message["method"] == "Runtime.consoleAPICalled":
            self.complaints.append(" ".join(str(each.get("value", each.get("description")))
                                            for each in parameters["args"]))
        elif message["method"] == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.complaints.append(details.get("exception", details).get("description", "")
                                   or str(details))
        elif message["method"] == "Log.entryAdded":
            self.complaints.append(parameters["entry"]["text"])

    def call(self, method, **parameters):
        """Calls a method of the protocol; returns its result."""
        self.number += 1
        request = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.writer, json.dumps(request).encode() + b"\0")
        until_s = time.monotonic() + HANG_S
        while True:
            message = self.read(until_s)
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return message["result"]
            if "method" in message:
                self.note(message)

    def value(self, expression):
        """Returns the value of an expression in the page, as JSON has it."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def until(self, expression, wanted=True):
        """Waits until an expression in the page has that value."""
        end_s = time.monotonic() + HANG_S
        while (value := self.value(expression)) != wanted:
            if time.monotonic() > end_s:
                raise TimeoutError(f"{expression} is {value!r}, not {wanted!r}")
            time.sleep(0.1)

    def open(self, url, width=1280, height=900, scheme="light"):
        """Opens a page in a window of that size."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'", True)

    def press(self, key):
        """Presses a key, by its name in KeyboardEvent.key."""
        text = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def picture(self, file):
        """Writes what can be seen as a PNG."""
        with open(file, "wb") as out:
            out.write(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Ends the browser."""
        try:
            self.call("Browser.close")
        except (EOFError, OSError):
            pass
        self.process.wait(HANG_S)
        os.close(self.writer)
        os.close(self.reader)
