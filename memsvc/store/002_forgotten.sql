-- What a user had forgotten stays away: a repeated import must not bring it back.
CREATE TABLE forgotten (
    kind TEXT NOT NULL,
    source TEXT NOT NULL,
    source_id TEXT NOT NULL,
    PRIMARY KEY (kind, source, source_id)
) WITHOUT ROWID;
