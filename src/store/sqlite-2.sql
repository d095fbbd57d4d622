-- What version 2 adds to version 1: clients, and operations that wait for their client or their server.
-- Who may come with a token, revoked ones too. `digest`: SHA-256 of the token. `person`: 0 or 1. `attributes`:
-- canonical JSON. `call_limit`: calls a minute; null for the default, 0 for none.
CREATE TABLE clients (
  name TEXT PRIMARY KEY,
  profile TEXT NOT NULL,
  person INTEGER NOT NULL,
  attributes TEXT NOT NULL,
  digest TEXT NOT NULL UNIQUE,
  call_limit INTEGER,
  created_us INTEGER NOT NULL,
  expires_us INTEGER,
  revoked_us INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX operations_parked ON operations (lease) WHERE state = 'parked';
CREATE INDEX operations_input ON operations (touched_us) WHERE state = 'input' AND key IS NULL;
CREATE INDEX operations_task ON operations (touched_us) WHERE state = 'task' AND key IS NULL;
