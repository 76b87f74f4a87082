-- The vectors that the semantic index is built from, and the work still to do. Triggers record it, so
-- code that writes records need not know about it. They delete and insert, because the conflict
-- clause of the statement that fires them would override their own.

-- Records whose vectors are missing or out of date.
CREATE TABLE pending (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    record INTEGER NOT NULL,
    created_at_epoch INTEGER NOT NULL,
    UNIQUE (kind, record)
);
CREATE INDEX pending_by_time ON pending (created_at_epoch);

-- Records whose vectors or filter values an index has to apply; the last change of each.
CREATE TABLE changes (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    record INTEGER NOT NULL,
    UNIQUE (kind, record)
);

-- `name` distinguishes the vectors of this store from others on a shared server; `rebuilds` counts
-- how often the user has requested a rebuild.
CREATE TABLE semantic (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    name TEXT NOT NULL,
    rebuilds INTEGER NOT NULL
);
INSERT INTO semantic VALUES (1, lower(hex(randomblob(6))), 0);

-- `vectors` are half-precision floats, one vector after the other.
CREATE TABLE observations_vectors (
    id INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    vectors BLOB NOT NULL
);
CREATE TRIGGER observations_pending_ai AFTER INSERT ON observations BEGIN
    DELETE FROM pending WHERE kind = 'observation' AND record = new.id;
    INSERT INTO pending (kind, record, created_at_epoch)
    VALUES ('observation', new.id, new.created_at_epoch);
END;
CREATE TRIGGER observations_pending_au AFTER UPDATE ON observations
WHEN new.content_hash <> old.content_hash BEGIN
    DELETE FROM pending WHERE kind = 'observation' AND record = new.id;
    INSERT INTO pending (kind, record, created_at_epoch)
    VALUES ('observation', new.id, new.created_at_epoch);
END;
CREATE TRIGGER observations_changes_au AFTER UPDATE ON observations BEGIN
    DELETE FROM changes WHERE kind = 'observation' AND record = new.id;
    INSERT INTO changes (kind, record) VALUES ('observation', new.id);
END;
CREATE TRIGGER observations_pending_ad AFTER DELETE ON observations BEGIN
    DELETE FROM pending WHERE kind = 'observation' AND record = old.id;
    DELETE FROM observations_vectors WHERE id = old.id;
    DELETE FROM changes WHERE kind = 'observation' AND record = old.id;
    INSERT INTO changes (kind, record) VALUES ('observation', old.id);
END;
CREATE TRIGGER observations_vectors_ai AFTER INSERT ON observations_vectors BEGIN
    DELETE FROM changes WHERE kind = 'observation' AND record = new.id;
    INSERT INTO changes (kind, record) VALUES ('observation', new.id);
END;
CREATE TRIGGER observations_vectors_au AFTER UPDATE ON observations_vectors BEGIN
    DELETE FROM changes WHERE kind = 'observation' AND record = new.id;
    INSERT INTO changes (kind, record) VALUES ('observation', new.id);
END;
INSERT INTO pending (kind, record, created_at_epoch)
SELECT 'observation', id, created_at_epoch FROM observations;

-- `vectors` are half-precision floats, one vector after the other.
CREATE TABLE sessions_vectors (
    id INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    vectors BLOB NOT NULL
);
CREATE TRIGGER sessions_pending_ai AFTER INSERT ON sessions BEGIN
    DELETE FROM pending WHERE kind = 'session' AND record = new.id;
    INSERT INTO pending (kind, record, created_at_epoch)
    VALUES ('session', new.id, new.created_at_epoch);
END;
CREATE TRIGGER sessions_pending_au AFTER UPDATE ON sessions
WHEN new.content_hash <> old.content_hash BEGIN
    DELETE FROM pending WHERE kind = 'session' AND record = new.id;
    INSERT INTO pending (kind, record, created_at_epoch)
    VALUES ('session', new.id, new.created_at_epoch);
END;
CREATE TRIGGER sessions_changes_au AFTER UPDATE ON sessions BEGIN
    DELETE FROM changes WHERE kind = 'session' AND record = new.id;
    INSERT INTO changes (kind, record) VALUES ('session', new.id);
END;
CREATE TRIGGER sessions_pending_ad AFTER DELETE ON sessions BEGIN
    DELETE FROM pending WHERE kind = 'session' AND record = old.id;
    DELETE FROM sessions_vectors WHERE id = old.id;
    DELETE FROM changes WHERE kind = 'session' AND record = old.id;
    INSERT INTO changes (kind, record) VALUES ('session', old.id);
END;
CREATE TRIGGER sessions_vectors_ai AFTER INSERT ON sessions_vectors BEGIN
    DELETE FROM changes WHERE kind = 'session' AND record = new.id;
    INSERT INTO changes (kind, record) VALUES ('session', new.id);
END;
CREATE TRIGGER sessions_vectors_au AFTER UPDATE ON sessions_vectors BEGIN
    DELETE FROM changes WHERE kind = 'session' AND record = new.id;
    INSERT INTO changes (kind, record) VALUES ('session', new.id);
END;
INSERT INTO pending (kind, record, created_at_epoch)
SELECT 'session', id, created_at_epoch FROM sessions;

-- `vectors` are half-precision floats, one vector after the other.
CREATE TABLE prompts_vectors (
    id INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    vectors BLOB NOT NULL
);
CREATE TRIGGER prompts_pending_ai AFTER INSERT ON prompts BEGIN
    DELETE FROM pending WHERE kind = 'prompt' AND record = new.id;
    INSERT INTO pending (kind, record, created_at_epoch)
    VALUES ('prompt', new.id, new.created_at_epoch);
END;
CREATE TRIGGER prompts_pending_au AFTER UPDATE ON prompts
WHEN new.content_hash <> old.content_hash BEGIN
    DELETE FROM pending WHERE kind = 'prompt' AND record = new.id;
    INSERT INTO pending (kind, record, created_at_epoch)
    VALUES ('prompt', new.id, new.created_at_epoch);
END;
CREATE TRIGGER prompts_changes_au AFTER UPDATE ON prompts BEGIN
    DELETE FROM changes WHERE kind = 'prompt' AND record = new.id;
    INSERT INTO changes (kind, record) VALUES ('prompt', new.id);
END;
CREATE TRIGGER prompts_pending_ad AFTER DELETE ON prompts BEGIN
    DELETE FROM pending WHERE kind = 'prompt' AND record = old.id;
    DELETE FROM prompts_vectors WHERE id = old.id;
    DELETE FROM changes WHERE kind = 'prompt' AND record = old.id;
    INSERT INTO changes (kind, record) VALUES ('prompt', old.id);
END;
CREATE TRIGGER prompts_vectors_ai AFTER INSERT ON prompts_vectors BEGIN
    DELETE FROM changes WHERE kind = 'prompt' AND record = new.id;
    INSERT INTO changes (kind, record) VALUES ('prompt', new.id);
END;
CREATE TRIGGER prompts_vectors_au AFTER UPDATE ON prompts_vectors BEGIN
    DELETE FROM changes WHERE kind = 'prompt' AND record = new.id;
    INSERT INTO changes (kind, record) VALUES ('prompt', new.id);
END;
INSERT INTO pending (kind, record, created_at_epoch)
SELECT 'prompt', id, created_at_epoch FROM prompts;
