"""
embed.py PAGE.html PAGE.h: makes the bytes of a page a C array, PAGE, and a Content-Security-Policy
that allows its one script and its one style, PAGE_POLICY.
"""
import base64
import hashlib
import re
import sys


def digest(page, element):
    """Returns the digest of the text of the one element of that name, as a source of a policy."""
    found = re.findall(rb"<%b>(.*?)</%b>" % (element, element), page, re.DOTALL)
    if len(found) != 1:
        sys.exit(f"{len(found)} elements {element.decode()}, not one")
    return "'sha256-" + base64.b64encode(hashlib.sha256(found[0]).digest()).decode() + "'"


def main(source, header):
    with open(source, "rb") as file:
        page = file.read()
    policy = "; ".join([
        "default-src 'none'", "script-src " + digest(page, b"script"),
        "style-src " + digest(page, b"style"), "connect-src 'self'", "img-src data:",
        "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"])
    with open(header, "w") as file:
        file.write(f'#define PAGE_POLICY "{policy}"\n\nstatic const unsigned char PAGE[] = {{\n')
        for at in range(0, len(page), 20):
            file.write("\t" + " ".join(f"{byte}," for byte in page[at:at + 20]) + "\n")
        file.write("};\n")


main(*sys.argv[1:])
