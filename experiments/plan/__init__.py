"""What a configuration needs of devices and how long it takes, by formulas and by the compiler, without weights."""
