-- A migration brings rows in past the flow, for many media at once.
INSERT INTO media_usages (media_id, usage_context)
	SELECT media.id, 'imported' FROM media, generate_series(1, 3) WHERE media.id BETWEEN 3 AND 5;
