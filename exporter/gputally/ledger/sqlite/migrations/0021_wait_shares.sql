-- How much of `quantity` (µGPU) is charged to the occupying tier and tenant, NULL for all of it, as in earlier rows: no pod
-- is charged for more than it holds. The highest price of the nodes that the pods select, NULL if all have `price_key`.
ALTER TABLE waits ADD COLUMN occupied INTEGER;
ALTER TABLE waits ADD COLUMN highest_price_key TEXT;
ALTER TABLE uncreated_waits ADD COLUMN highest_price_key TEXT;
