"""Downloads, mirrors and archives of the data sets."""
