"""Runs verify.py over many logs in one process.

batch.py vectors DIR            one line of JSON a vector: [name, finding]
batch.py logs FILE              FILE holds a JSON array of logs as text; one line of JSON: their findings
batch.py mutants FILE HEAD STEP every STEP-th byte of FILE changed, dropped, doubled; lines likewise
"""
import base64, json, os, sys

from verify import check, verify

def vectors(folder):
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as file: one = json.load(file)
        data = base64.b64decode(one["log_base64"]) if "log_base64" in one else one["log"].encode()
        print(json.dumps([one["name"], verify(data, one.get("head"), one.get("origin"))]))

def logs(path):
    with open(path, encoding="utf-8") as file:
        print(json.dumps([verify(log.encode()) for log in json.load(file)]))

def mutants(path, head, step):
    with open(path, "rb") as file: data = file.read()
    lines = data.split(b"\n")[:-1]
    prevs, starts, at = ["0" * 64], [], 0
    for seq, line in enumerate(lines):
        prevs.append(check(line, seq, prevs[-1])["sha256"])
        starts.append(at)
        at += len(line) + 1
    count, wrong = 0, []

    def judge(what, index, tail):
        """`tail` replaces the lines from `index` on; those before it are known to be good."""
        nonlocal count
        count += 1
        found = verify(tail, head, None, index - 1, prevs[index])
        if found[0] or found[1] != index + 1: wrong.append([what, index + 1, found])

    for index, (line, start) in enumerate(zip(lines, starts)):
        # Two lines more are enough: a bad line ends the walk, and an accepted one ends the test.
        rest = b"".join(one + b"\n" for one in lines[index + 1:index + 3])
        whole = line + b"\n"
        for offset in range((-start) % step, len(whole), step):
            byte, before, after = whole[offset], whole[:offset], whole[offset + 1:] + rest
            for flip in (0x01, 0x20, 0x80):
                judge("flip", index, before + bytes([byte ^ flip]) + after)
            judge("delete", index, before + after)
            judge("insert", index, before + bytes([byte ^ 0x11, byte]) + after)
        judge("drop", index, b"".join(one + b"\n" for one in lines[index + 1:]))
        if index + 1 < len(lines):
            judge("duplicate", index + 1, whole + rest)
            for other in range(index + 1, len(lines)):
                judge("swap", index, lines[other] + b"\n" + rest)
    print(json.dumps([count, wrong[:10]]))

if __name__ == "__main__":
    {"vectors": lambda folder: vectors(folder), "logs": lambda path: logs(path),
     "mutants": lambda path, head, step: mutants(path, head, int(step))}[sys.argv[1]](*sys.argv[2:])
