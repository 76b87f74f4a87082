-- Forgotten records stay forgotten: a repeated import must not restore them, or anything that was
-- or would be merged into them. Of their content only a hash is kept. The kind `work` stands for work
-- sessions without records; their `source_id` is a hash too.
CREATE TABLE forgotten (
    kind TEXT NOT NULL,
    source TEXT NOT NULL,
    source_id TEXT NOT NULL,
    content_hash INTEGER NOT NULL DEFAULT 0,
    created_at_epoch INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (kind, source, source_id)
) WITHOUT ROWID;
CREATE INDEX forgotten_by_content ON forgotten (content_hash);
