"Build tools of this repository; the package `bendml` does not need them."
