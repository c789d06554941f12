"""Studies of trained models. A new study is one file here and one line in `study.STUDIES`."""
