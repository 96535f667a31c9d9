"""Instructions and observations in words: what they say of places, things and relations."""
