-- Who wrote what an observation stands for, such as a commit. Costs count it where it is known, as
-- answers show it only there; so no cost of a stored record changes.
ALTER TABLE observations ADD COLUMN author TEXT NOT NULL DEFAULT '';

DROP VIEW observations_costs;
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
    ) AS BLOB)) + iif(author = '', 0, length(CAST(',"author":' || json_quote(author) AS BLOB)))
    + 3) / 4 AS read_tokens
FROM observations;
