-- The tables of ledger.db. Every change of operations, pins, definitions, policy and clients has a record in entries.
-- sqlite-2.sql, which follows, is all that version 2 adds to version 1.
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

-- `ends`: bytes of the log through this line and its LF, so that a size of the mirror names a record.
CREATE TABLE entries (
  seq INTEGER PRIMARY KEY,
  line TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  ends INTEGER NOT NULL
) STRICT;
CREATE TRIGGER entries_stay BEFORE UPDATE ON entries
  BEGIN SELECT RAISE(ABORT, 'entries are never changed'); END;
CREATE TRIGGER entries_remain BEFORE DELETE ON entries
  BEGIN SELECT RAISE(ABORT, 'entries are never removed'); END;

-- One row a key, reused by each send of that key; without a key, one row until the operation is over.
-- `attempt`: the send that the row is about. `state`: open; input, parked, task: it waits; done, unknown,
-- unsent. `lease`: of the process that is needed for its end, or empty. `again`: 1 when an
-- earlier send under this key may have run. `salt`: random, new with each writing, so that the row's digest
-- in the log tells nothing of a short answer.
CREATE TABLE operations (
  operation TEXT PRIMARY KEY,
  salt TEXT NOT NULL,
  attempt TEXT NOT NULL,
  client TEXT NOT NULL,
  upstream TEXT NOT NULL,
  tool TEXT NOT NULL,
  key TEXT,
  does TEXT NOT NULL,
  args_digest TEXT NOT NULL,
  segment TEXT NOT NULL,
  pin TEXT,
  state TEXT NOT NULL,
  again INTEGER NOT NULL,
  lease TEXT NOT NULL,
  draft TEXT,
  touched_us INTEGER NOT NULL,
  outcome TEXT,
  failed INTEGER NOT NULL,
  answer TEXT,
  answer_digest TEXT,
  answer_bytes INTEGER
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX operations_key ON operations (client, upstream, tool, key) WHERE key IS NOT NULL;
CREATE INDEX operations_open ON operations (lease) WHERE state = 'open';

CREATE TABLE pins (
  tool TEXT PRIMARY KEY,
  hash TEXT,
  waiting TEXT,
  since_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE definitions (hash TEXT PRIMARY KEY, text TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE policy (digest TEXT PRIMARY KEY, text TEXT NOT NULL) STRICT, WITHOUT ROWID;

-- Who is alive. Not covered by the log.
CREATE TABLE leases (
  nonce TEXT PRIMARY KEY,
  beats INTEGER NOT NULL,
  since_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
