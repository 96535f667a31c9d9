"""ALFWorld's sentences: parsers, adapters, teachers. The only part of a world that other worlds may import."""
