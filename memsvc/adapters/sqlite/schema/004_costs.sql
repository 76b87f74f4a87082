-- The cost of reading each record in tokens, computed on every write: a quarter of the bytes of its
-- JSON in answers. One view per kind has the formula.
CREATE TABLE costs (
    kind TEXT NOT NULL,
    record INTEGER NOT NULL,
    read_tokens INTEGER NOT NULL,
    discovery_tokens INTEGER NOT NULL,
    PRIMARY KEY (kind, record)
) WITHOUT ROWID;
-- The columns that identify a discovery, where its cost is known.
CREATE INDEX observations_by_discovery ON observations (
    project, session_id, prompt_number, discovery_tokens, created_at_epoch
) WHERE discovery_tokens > 0;

CREATE VIEW observations_costs AS
SELECT id AS record, discovery_tokens,
    (length(CAST(json_object(
        'kind', 'observation', 'created_at', '2000-01-01T00:00:00Z', 'id', id,
        'project', project, 'session_id', session_id, 'created_at_epoch', created_at_epoch,
        'source', source, 'source_id', source_id, 'type', type, 'title', title,
        'subtitle', subtitle, 'narrative', narrative, 'facts', json(facts),
        'concepts', json(concepts), 'files_read', json(files_read),
        'files_modified', json(files_modified), 'prompt_number', prompt_number,
        'discovery_tokens', discovery_tokens
    ) AS BLOB)) + 3) / 4 AS read_tokens
FROM observations;
CREATE TRIGGER observations_costs_ai AFTER INSERT ON observations BEGIN
    INSERT INTO costs (kind, record, read_tokens, discovery_tokens)
    SELECT 'observation', record, read_tokens, discovery_tokens
    FROM observations_costs WHERE record = new.id;
END;
CREATE TRIGGER observations_costs_au AFTER UPDATE ON observations BEGIN
    UPDATE costs SET (read_tokens, discovery_tokens) =
        (SELECT read_tokens, discovery_tokens FROM observations_costs WHERE record = new.id)
    WHERE kind = 'observation' AND record = new.id;
END;
CREATE TRIGGER observations_costs_ad AFTER DELETE ON observations BEGIN
    DELETE FROM costs WHERE kind = 'observation' AND record = old.id;
END;
INSERT INTO costs (kind, record, read_tokens, discovery_tokens)
SELECT 'observation', record, read_tokens, discovery_tokens FROM observations_costs;

CREATE VIEW sessions_costs AS
SELECT id AS record, 0 AS discovery_tokens,
    (length(CAST(json_object(
        'kind', 'session', 'created_at', '2000-01-01T00:00:00Z', 'id', id, 'project', project,
        'session_id', session_id, 'created_at_epoch', created_at_epoch, 'source', source,
        'source_id', source_id, 'request', request, 'investigated', investigated,
        'learned', learned, 'completed', completed, 'next_steps', next_steps, 'notes', notes,
        'files_read', json(files_read), 'files_edited', json(files_edited)
    ) AS BLOB)) + 3) / 4 AS read_tokens
FROM sessions;
CREATE TRIGGER sessions_costs_ai AFTER INSERT ON sessions BEGIN
    INSERT INTO costs (kind, record, read_tokens, discovery_tokens)
    SELECT 'session', record, read_tokens, discovery_tokens
    FROM sessions_costs WHERE record = new.id;
END;
CREATE TRIGGER sessions_costs_au AFTER UPDATE ON sessions BEGIN
    UPDATE costs SET (read_tokens, discovery_tokens) =
        (SELECT read_tokens, discovery_tokens FROM sessions_costs WHERE record = new.id)
    WHERE kind = 'session' AND record = new.id;
END;
CREATE TRIGGER sessions_costs_ad AFTER DELETE ON sessions BEGIN
    DELETE FROM costs WHERE kind = 'session' AND record = old.id;
END;
INSERT INTO costs (kind, record, read_tokens, discovery_tokens)
SELECT 'session', record, read_tokens, discovery_tokens FROM sessions_costs;

CREATE VIEW prompts_costs AS
SELECT id AS record, 0 AS discovery_tokens,
    (length(CAST(json_object(
        'kind', 'prompt', 'created_at', '2000-01-01T00:00:00Z', 'id', id, 'project', project,
        'session_id', session_id, 'created_at_epoch', created_at_epoch, 'source', source,
        'source_id', source_id, 'prompt_text', prompt_text, 'prompt_number', prompt_number
    ) AS BLOB)) + 3) / 4 AS read_tokens
FROM prompts;
CREATE TRIGGER prompts_costs_ai AFTER INSERT ON prompts BEGIN
    INSERT INTO costs (kind, record, read_tokens, discovery_tokens)
    SELECT 'prompt', record, read_tokens, discovery_tokens
    FROM prompts_costs WHERE record = new.id;
END;
CREATE TRIGGER prompts_costs_au AFTER UPDATE ON prompts BEGIN
    UPDATE costs SET (read_tokens, discovery_tokens) =
        (SELECT read_tokens, discovery_tokens FROM prompts_costs WHERE record = new.id)
    WHERE kind = 'prompt' AND record = new.id;
END;
CREATE TRIGGER prompts_costs_ad AFTER DELETE ON prompts BEGIN
    DELETE FROM costs WHERE kind = 'prompt' AND record = old.id;
END;
INSERT INTO costs (kind, record, read_tokens, discovery_tokens)
SELECT 'prompt', record, read_tokens, discovery_tokens FROM prompts_costs;
