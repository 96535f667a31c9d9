"""A configuration's needs of devices and time, by formulas and by the compiler, without weights."""
