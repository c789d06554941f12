"""Result files: one class for each kind, used by what writes the file and by what shows it."""
