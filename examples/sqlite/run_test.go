//go:build cgo && sqlite3

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

func TestRun(t *testing.T) {
	dir := t.TempDir()
	people, bad, db := filepath.Join(dir, "people.csv"), filepath.Join(dir, "bad.csv"), filepath.Join(dir, "x.db")
	for name, text := range map[string]string{
		people: "name,\"a \"\"city\"\"\",n\nann,Rome,3\nbob,\"Bad, 2\",4\ncy,Rome,10\n",
		bad:    "a,b\n1,2\n3\n",
	} {
		testcall.Must(t, os.WriteFile(name, []byte(text), 0o666))
	}
	const query = `SELECT "a ""city""" city, sum(n) FROM people GROUP BY 1 ORDER BY 2`
	const answer = "city\tsum(n)\nBad, 2\t4\nRome\t13\n"
	for _, c := range []struct {
		args           []string
		code           int
		stdout, stderr string // the last part of each
	}{
		{[]string{query, people}, 0, answer, ""},
		{[]string{"-forget", query, people}, 0, answer, "after collections: 0 databases and 0 statements live, 0 bytes in use by SQLite\n"},
		{[]string{"-db", db, "SELECT 1 one", people}, 0, "one\n1\n", ""},
		{[]string{"-db", db, query}, 0, answer, ""},
		{[]string{"-db", db, "SELECT count(*) FROM bad", bad}, 1, "", "bad.csv: record on line 3: wrong number of fields\n"},
		{[]string{"-db", db, "SELECT count(*) FROM bad"}, 1, "", "sqlite: no such table: bad\n"},
		{[]string{"-db", dir, "SELECT 1"}, 1, "", ": unable to open database file\n"},
		{[]string{"SELECT n FROM people", filepath.Join(dir, "none.csv")}, 1, "", ": no such file or directory\n"},
		{[]string{"SELECT abs(-9223372036854775808)"}, 1, "", "sqlite: integer overflow\n"},
		{[]string{"-h"}, 0, "(default \":memory:\")\n  -forget\n    \tclose no statement, and say what is left\n", ""},
		{nil, 2, "", "sqlite: no query is given\n"},
		{[]string{"-unknown"}, 2, "", "sqlite: flag provided but not defined: -unknown\n"},
	} {
		t.Run(strings.ReplaceAll(strings.Join(c.args, " "), dir, "dir"), func(t *testing.T) {
			var stdout, stderr strings.Builder
			if code := run(t.Context(), c.args, nil, &stdout, &stderr); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			if !strings.HasSuffix(stdout.String(), c.stdout) || c.stdout == "" && stdout.Len() > 0 {
				t.Errorf("stdout %q, want %q", stdout.String(), c.stdout)
			}
			if !strings.HasSuffix(stderr.String(), c.stderr) || c.stderr == "" && stderr.Len() > 0 {
				t.Errorf("stderr %q, want %q", stderr.String(), c.stderr)
			}
		})
	}
}
