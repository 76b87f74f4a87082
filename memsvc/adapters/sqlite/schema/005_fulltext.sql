-- FTS5 reads the whole content of an index, for `rebuild` and `integrity-check`, only from views
-- without virtual tables; json_each is one. These views give the same text by JSON functions alone,
-- so the indexes stay as they are.
DROP VIEW observations_text;
CREATE VIEW observations_text AS
SELECT id, title, subtitle, narrative,
    (WITH RECURSIVE fact(place) AS (
        SELECT 0 WHERE json_array_length(facts) > 0
        UNION ALL SELECT place + 1 FROM fact WHERE place + 1 < json_array_length(facts)
    ) SELECT group_concat(json_extract(facts, '$[' || place || ']'), char(10)) FROM fact) AS facts,
    (WITH RECURSIVE
        was_read(place) AS (
            SELECT 0 WHERE json_array_length(files_read) > 0
            UNION ALL SELECT place + 1 FROM was_read
            WHERE place + 1 < json_array_length(files_read)
        ),
        was_modified(place) AS (
            SELECT 0 WHERE json_array_length(files_modified) > 0
            UNION ALL SELECT place + 1 FROM was_modified
            WHERE place + 1 < json_array_length(files_modified)
        )
    SELECT group_concat(value, ' ') FROM (
        SELECT json_extract(files_read, '$[' || place || ']') AS value FROM was_read
        UNION SELECT json_extract(files_modified, '$[' || place || ']') FROM was_modified)) AS files,
    parts, tags
FROM observations;

DROP VIEW sessions_text;
CREATE VIEW sessions_text AS
SELECT id, request, investigated, learned, completed, next_steps, notes,
    (WITH RECURSIVE
        was_read(place) AS (
            SELECT 0 WHERE json_array_length(files_read) > 0
            UNION ALL SELECT place + 1 FROM was_read
            WHERE place + 1 < json_array_length(files_read)
        ),
        was_edited(place) AS (
            SELECT 0 WHERE json_array_length(files_edited) > 0
            UNION ALL SELECT place + 1 FROM was_edited
            WHERE place + 1 < json_array_length(files_edited)
        )
    SELECT group_concat(value, ' ') FROM (
        SELECT json_extract(files_read, '$[' || place || ']') AS value FROM was_read
        UNION SELECT json_extract(files_edited, '$[' || place || ']') FROM was_edited)) AS files,
    parts, tags
FROM sessions;

-- What failed while serving; the next start looks at it and mends it.
CREATE TABLE broken (part TEXT PRIMARY KEY, reason TEXT NOT NULL) WITHOUT ROWID;
