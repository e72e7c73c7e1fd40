"""The command line: `scoreline train data.csv --label outcome --measure f1`."""
