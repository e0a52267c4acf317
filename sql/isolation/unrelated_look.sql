-- The look for a key, in a Serializable transaction.
SELECT id FROM item WHERE id = 2;
