//go:build duckdb

package tabletest

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/formetl/formetl/load/loadtest/duckdb"
)

// serveReaders makes this program the reader of a test's database, in its process.
func serveReaders() { duckdb.Serve() }

// moreTags are those that formetl is built with besides.
const moreTags = ",duckdb"

// fileStores makes stores of DuckDB.
func fileStores() map[string]func(t *testing.T) store {
	return map[string]func(t *testing.T) store{"duckdb": duckdbStore}
}

func duckdbStore(t *testing.T) store {
	t.Helper()
	client := duckdb.NewClient(t)
	file := filepath.Join(t.TempDir(), "warehouse.duckdb")
	return store{
		output: `database: duckdb, path: "` + filepath.ToSlash(file) + `"`, shown: filepath.ToSlash(file) + "/forms.form1/",
		query: func(sql string) ([]string, error) { return client.Query(file, sql) },
		rows:  `SELECT id, value, amount, finished, to_json(colours)::text FROM forms.form1 ORDER BY id`,
		lists: "SELECT id, n, colours[n] FROM (SELECT id, colours, unnest(generate_series(1, len(colours))) AS n FROM forms.form1) ORDER BY id, n",
		types: "SELECT count(DISTINCT typeof(amount)), min(typeof(amount)) FROM forms.form1",
		control: func() (n int) {
			err := filepath.WalkDir(filepath.Join(file+".formetl", "forms.form1"), func(_ string, e fs.DirEntry, err error) error {
				if err == nil && !e.IsDir() {
					n++
				}
				return err
			})
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
			return n
		},
		text: "VARCHAR",
	}
}
