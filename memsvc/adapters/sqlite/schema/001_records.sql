-- Ids are never reused (AUTOINCREMENT): a cited #123 always means the same record.
CREATE TABLE observations (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    type TEXT NOT NULL,
    title TEXT NOT NULL,
    subtitle TEXT NOT NULL,
    narrative TEXT NOT NULL,
    facts TEXT NOT NULL,
    concepts TEXT NOT NULL,
    files_read TEXT NOT NULL,
    files_modified TEXT NOT NULL,
    prompt_number INTEGER,
    discovery_tokens INTEGER NOT NULL,
    project TEXT NOT NULL,
    session_id TEXT NOT NULL,
    created_at_epoch INTEGER NOT NULL,
    source TEXT NOT NULL,
    source_id TEXT NOT NULL,
    content_hash INTEGER NOT NULL,
    parts TEXT NOT NULL,
    tags TEXT NOT NULL,
    UNIQUE (source, source_id)
);
CREATE INDEX observations_by_time ON observations (created_at_epoch);
CREATE INDEX observations_by_content ON observations (content_hash);

CREATE TABLE sessions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    request TEXT NOT NULL,
    investigated TEXT NOT NULL,
    learned TEXT NOT NULL,
    completed TEXT NOT NULL,
    next_steps TEXT NOT NULL,
    notes TEXT NOT NULL,
    files_read TEXT NOT NULL,
    files_edited TEXT NOT NULL,
    project TEXT NOT NULL,
    session_id TEXT NOT NULL,
    created_at_epoch INTEGER NOT NULL,
    source TEXT NOT NULL,
    source_id TEXT NOT NULL,
    content_hash INTEGER NOT NULL,
    parts TEXT NOT NULL,
    tags TEXT NOT NULL,
    UNIQUE (source, source_id)
);
CREATE INDEX sessions_by_time ON sessions (created_at_epoch);
CREATE INDEX sessions_by_content ON sessions (content_hash);

CREATE TABLE prompts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    prompt_text TEXT NOT NULL,
    prompt_number INTEGER,
    project TEXT NOT NULL,
    session_id TEXT NOT NULL,
    created_at_epoch INTEGER NOT NULL,
    source TEXT NOT NULL,
    source_id TEXT NOT NULL,
    content_hash INTEGER NOT NULL,
    parts TEXT NOT NULL,
    tags TEXT NOT NULL,
    UNIQUE (source, source_id)
);
CREATE INDEX prompts_by_time ON prompts (created_at_epoch);
CREATE INDEX prompts_by_content ON prompts (content_hash);

-- Work sessions group records of the three kinds; project_key is the case-folded project.
CREATE TABLE work_sessions (
    project_key TEXT NOT NULL,
    session_id TEXT NOT NULL,
    project TEXT NOT NULL,
    started_at_epoch INTEGER NOT NULL,
    completed_at_epoch INTEGER,
    last_at_epoch INTEGER NOT NULL,
    status TEXT NOT NULL,
    PRIMARY KEY (project_key, session_id)
) WITHOUT ROWID;
CREATE INDEX work_sessions_by_time ON work_sessions (last_at_epoch);
CREATE INDEX work_sessions_by_project ON work_sessions (project_key, last_at_epoch);

-- The values that records are filtered by (type, concept, project, file, work session), each once.
-- `value` is compared, `name` is the spelling first seen.
CREATE TABLE labels (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    field TEXT NOT NULL,
    value TEXT NOT NULL,
    name TEXT NOT NULL,
    UNIQUE (kind, field, value)
);
-- Which records have a label, in time order.
CREATE TABLE labelled (
    label INTEGER NOT NULL,
    created_at_epoch INTEGER NOT NULL,
    record INTEGER NOT NULL,
    PRIMARY KEY (label, created_at_epoch, record)
) WITHOUT ROWID;
-- `b/c.py` and `c.py` lead to the label of `a/b/c.py`.
CREATE TABLE path_endings (
    ending TEXT NOT NULL,
    label INTEGER NOT NULL,
    PRIMARY KEY (ending, label)
) WITHOUT ROWID;

-- Increased by every write: caches depend on it.
CREATE TABLE generation (id INTEGER PRIMARY KEY CHECK (id = 1), number INTEGER NOT NULL);
INSERT INTO generation VALUES (1, 0);

CREATE VIEW observations_text AS
SELECT id, title, subtitle, narrative,
    (SELECT group_concat(value, char(10)) FROM json_each(facts)) AS facts,
    (SELECT group_concat(value, ' ') FROM (SELECT value FROM json_each(files_read)
        UNION SELECT value FROM json_each(files_modified))) AS files,
    parts, tags
FROM observations;
CREATE VIRTUAL TABLE observations_fts USING fts5(
    title, subtitle, narrative, facts, files, parts, tags,
    content='observations_text', content_rowid='id',
    tokenize='porter unicode61 remove_diacritics 2'
);
CREATE VIRTUAL TABLE observations_vocab USING fts5vocab(observations_fts, row);
CREATE TRIGGER observations_ai AFTER INSERT ON observations BEGIN
    INSERT INTO observations_fts (rowid, title, subtitle, narrative, facts, files, parts, tags)
    VALUES (new.id, new.title, new.subtitle, new.narrative,
        (SELECT group_concat(value, char(10)) FROM json_each(new.facts)),
        (SELECT group_concat(value, ' ') FROM (SELECT value FROM json_each(new.files_read)
            UNION SELECT value FROM json_each(new.files_modified))),
        new.parts, new.tags);
END;
CREATE TRIGGER observations_ad AFTER DELETE ON observations BEGIN
    INSERT INTO observations_fts (
        observations_fts, rowid, title, subtitle, narrative, facts, files, parts, tags)
    VALUES ('delete', old.id, old.title, old.subtitle, old.narrative,
        (SELECT group_concat(value, char(10)) FROM json_each(old.facts)),
        (SELECT group_concat(value, ' ') FROM (SELECT value FROM json_each(old.files_read)
            UNION SELECT value FROM json_each(old.files_modified))),
        old.parts, old.tags);
END;
CREATE TRIGGER observations_au AFTER UPDATE ON observations BEGIN
    INSERT INTO observations_fts (
        observations_fts, rowid, title, subtitle, narrative, facts, files, parts, tags)
    VALUES ('delete', old.id, old.title, old.subtitle, old.narrative,
        (SELECT group_concat(value, char(10)) FROM json_each(old.facts)),
        (SELECT group_concat(value, ' ') FROM (SELECT value FROM json_each(old.files_read)
            UNION SELECT value FROM json_each(old.files_modified))),
        old.parts, old.tags);
    INSERT INTO observations_fts (rowid, title, subtitle, narrative, facts, files, parts, tags)
    VALUES (new.id, new.title, new.subtitle, new.narrative,
        (SELECT group_concat(value, char(10)) FROM json_each(new.facts)),
        (SELECT group_concat(value, ' ') FROM (SELECT value FROM json_each(new.files_read)
            UNION SELECT value FROM json_each(new.files_modified))),
        new.parts, new.tags);
END;

CREATE VIEW sessions_text AS
SELECT id, request, investigated, learned, completed, next_steps, notes,
    (SELECT group_concat(value, ' ') FROM (SELECT value FROM json_each(files_read)
        UNION SELECT value FROM json_each(files_edited))) AS files,
    parts, tags
FROM sessions;
CREATE VIRTUAL TABLE sessions_fts USING fts5(
    request, investigated, learned, completed, next_steps, notes, files, parts, tags,
    content='sessions_text', content_rowid='id',
    tokenize='porter unicode61 remove_diacritics 2'
);
CREATE VIRTUAL TABLE sessions_vocab USING fts5vocab(sessions_fts, row);
CREATE TRIGGER sessions_ai AFTER INSERT ON sessions BEGIN
    INSERT INTO sessions_fts (
        rowid, request, investigated, learned, completed, next_steps, notes, files, parts, tags)
    VALUES (new.id, new.request, new.investigated, new.learned, new.completed, new.next_steps,
        new.notes,
        (SELECT group_concat(value, ' ') FROM (SELECT value FROM json_each(new.files_read)
            UNION SELECT value FROM json_each(new.files_edited))),
        new.parts, new.tags);
END;
CREATE TRIGGER sessions_ad AFTER DELETE ON sessions BEGIN
    INSERT INTO sessions_fts (
        sessions_fts, rowid, request, investigated, learned, completed, next_steps, notes, files,
        parts, tags)
    VALUES ('delete', old.id, old.request, old.investigated, old.learned, old.completed,
        old.next_steps, old.notes,
        (SELECT group_concat(value, ' ') FROM (SELECT value FROM json_each(old.files_read)
            UNION SELECT value FROM json_each(old.files_edited))),
        old.parts, old.tags);
END;
CREATE TRIGGER sessions_au AFTER UPDATE ON sessions BEGIN
    INSERT INTO sessions_fts (
        sessions_fts, rowid, request, investigated, learned, completed, next_steps, notes, files,
        parts, tags)
    VALUES ('delete', old.id, old.request, old.investigated, old.learned, old.completed,
        old.next_steps, old.notes,
        (SELECT group_concat(value, ' ') FROM (SELECT value FROM json_each(old.files_read)
            UNION SELECT value FROM json_each(old.files_edited))),
        old.parts, old.tags);
    INSERT INTO sessions_fts (
        rowid, request, investigated, learned, completed, next_steps, notes, files, parts, tags)
    VALUES (new.id, new.request, new.investigated, new.learned, new.completed, new.next_steps,
        new.notes,
        (SELECT group_concat(value, ' ') FROM (SELECT value FROM json_each(new.files_read)
            UNION SELECT value FROM json_each(new.files_edited))),
        new.parts, new.tags);
END;

CREATE VIEW prompts_text AS SELECT id, prompt_text, parts, tags FROM prompts;
CREATE VIRTUAL TABLE prompts_fts USING fts5(
    prompt_text, parts, tags,
    content='prompts_text', content_rowid='id',
    tokenize='porter unicode61 remove_diacritics 2'
);
CREATE VIRTUAL TABLE prompts_vocab USING fts5vocab(prompts_fts, row);
CREATE TRIGGER prompts_ai AFTER INSERT ON prompts BEGIN
    INSERT INTO prompts_fts (rowid, prompt_text, parts, tags)
    VALUES (new.id, new.prompt_text, new.parts, new.tags);
END;
CREATE TRIGGER prompts_ad AFTER DELETE ON prompts BEGIN
    INSERT INTO prompts_fts (prompts_fts, rowid, prompt_text, parts, tags)
    VALUES ('delete', old.id, old.prompt_text, old.parts, old.tags);
END;
CREATE TRIGGER prompts_au AFTER UPDATE ON prompts BEGIN
    INSERT INTO prompts_fts (prompts_fts, rowid, prompt_text, parts, tags)
    VALUES ('delete', old.id, old.prompt_text, old.parts, old.tags);
    INSERT INTO prompts_fts (rowid, prompt_text, parts, tags)
    VALUES (new.id, new.prompt_text, new.parts, new.tags);
END;
