"""Memory in a folder: events on the disk, snapshots, forgetting."""
