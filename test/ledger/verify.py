"""Verifies an audit log with the standard library alone: python3 verify.py FILE [HEAD]

HEAD is SHA256 or SEQ:SHA256. Written from docs/ledger.md; shares no code with the program.
Exit 0: every line holds; 1: a line does not; 3: a version or kind that it does not know.
"""
import hashlib, json, re, sys

INT, TEXT, HASH, LIST, DICT = int, str, "hash", list, dict
MEMBERS = dict(seq=INT, ts=INT, decision=TEXT, method=TEXT, name=TEXT, outcome=TEXT, request_id=TEXT,
               verdict=TEXT, prev_sha256=HASH, sha256=HASH, failures=LIST)
OR_NULL = dict(args_bytes=INT, duration_us=INT, result_bytes=INT, round=INT, facts=DICT, args_digest=TEXT,
               client=TEXT, code=TEXT, identity=TEXT, policy=TEXT, profile=TEXT, result_digest=TEXT,
               rule=TEXT, segment=TEXT, trace=TEXT, transport=TEXT)
KINDS = "genesis start stop call intent outcome malformed view pin policy lease recovery count ask client".split()

def members(pairs):
    if len(dict(pairs)) != len(pairs) or "__proto__" in dict(pairs): raise ValueError("name")
    return dict(pairs)

def never(word): raise ValueError(word)

def sound(value, left=4):
    if isinstance(value, (dict, list)):
        names = value if isinstance(value, dict) else ()
        inner = value.values() if isinstance(value, dict) else value
        return (left > 0 and all(re.fullmatch("[a-z][a-z0-9_]*", name) for name in names)
                and all(sound(one, left - 1) for one in inner))
    return not isinstance(value, float) and (not isinstance(value, int) or abs(value) < 2 ** 53)

def typed(value, kind):
    if kind is HASH: return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value)
    if kind is LIST: return isinstance(value, list) and all(isinstance(one, dict) for one in value)
    return isinstance(value, kind) and not isinstance(value, bool)

def text_of(value): return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

def check(line, seq, prev):
    """The record that `line` is at place `seq` after hash `prev`, or the code of what is wrong."""
    if len(line) > 65536 or not re.fullmatch(rb'(?:[\x20-\x5b\x5d-\x7e]|\\["\\])*', line): return "bytes"
    try: entry = json.loads(line, object_pairs_hook=members, parse_constant=never)
    except (ValueError, RecursionError): return "json"
    if not isinstance(entry, dict): return "json"
    if text_of(entry).encode() != line or not sound(entry): return "form"
    if not typed(entry.get("seq"), INT) or entry["seq"] != seq: return "seq"
    if entry.get("prev_sha256") != prev: return "link"
    body = text_of({name: one for name, one in entry.items() if name != "sha256"})
    if hashlib.sha256((prev + body).encode()).hexdigest() != entry.get("sha256"): return "hash"
    if not typed(entry.get("v"), INT) or entry["v"] != 1: return "version"
    if entry.get("kind") not in KINDS: return "kind"
    if not all(typed(entry.get(name), kind) for name, kind in MEMBERS.items()): return "member"
    if not all(name in entry and (entry[name] is None or typed(entry[name], kind))
               for name, kind in OR_NULL.items()): return "member"
    if (entry["kind"] == "genesis") != (seq == 0): return "genesis"
    if seq == 0 and not all(re.fullmatch("[0-9a-f]{32}", str(entry.get(name))) for name in ("origin", "nonce")):
        return "genesis"
    return entry

def verify(data, head=None, origin=None, seq=-1, prev="0" * 64):
    """(True, entries, last hash, anchored seq or None) or (False, first bad line, code)."""
    want = re.fullmatch("(?:([0-9]+):)?([0-9a-f]{64})", head) if head else None
    anchored, lines = None, data.split(b"\n")
    for line in lines[:-1]:
        entry = check(line, seq + 1, prev)
        if isinstance(entry, str): return False, seq + 2, entry
        seq, prev = seq + 1, entry["sha256"]
        if seq == 0 and origin is not None and entry["origin"] != origin: return False, 1, "origin"
        if want and prev == want[2] and want[1] in (None, str(seq)): anchored = seq
        elif want and want[1] == str(seq): return False, seq + 1, "head"
    if lines[-1]: return False, seq + 2, "torn"
    if seq < 0: return False, 1, "genesis"
    if head and anchored is None: return False, seq + 2, "head"
    return True, seq + 1, prev, anchored

if __name__ == "__main__":
    found = verify(open(sys.argv[1], "rb").read(), *sys.argv[2:3])
    if not found[0]:
        print(f"line {found[1]}: {found[2]}")
        sys.exit(3 if found[2] in ("version", "kind") else 1)
    print(f"{found[1]} records, head {found[1] - 1}:{found[2]}",
          "unanchored tail" if found[3] is None else f"anchored at {found[3]}", sep=", ")
