"""Engine two: the tool-calling agent of documents 002 and 004."""
