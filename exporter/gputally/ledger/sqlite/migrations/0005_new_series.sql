-- From when on the value of a series is published, and until then only its floor; NULL while a label of it is evicted.
-- What was published by now is shown from now on; what was not begins anew.
ALTER TABLE series RENAME COLUMN exposed_us TO shown_us;
UPDATE series SET shown_us = shown_us + 1;

-- When anything of a value of a label last grew, and since when its series are not exported any more.
ALTER TABLE admitted ADD COLUMN grew_us INTEGER NOT NULL DEFAULT 0;
ALTER TABLE admitted ADD COLUMN evicted_us INTEGER;
UPDATE admitted SET grew_us = coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'at_us'), 0);
