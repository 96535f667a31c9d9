"""Programs that make the files which ship inside the package: statistics, fitted weights, word vectors."""
