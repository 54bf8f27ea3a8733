//go:build duckdb

package duckdb

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest"
	"github.com/formetl/formetl/load/loadtest/duckdb"
)

func TestMain(m *testing.M) {
	duckdb.Serve()
	os.Exit(m.Run())
}

// open gives a destination at a table of a database.
func open(t testing.TB, file, table string) *Destination {
	t.Helper()
	address, err := Address(file)
	if err != nil {
		t.Fatal(err)
	}
	d, err := New(address + "/" + table + "/")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// names lists all that lies at a table: objects, and what is in its folder.
func names(t testing.TB, client *duckdb.Client, file, table string) []string {
	t.Helper()
	var list []string
	folder := filepath.Join(file+folderSuffix, "main."+table)
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && !e.IsDir() {
			name, _ := filepath.Rel(folder, path)
			list = append(list, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); err == nil {
		found, err := client.Query(file, "SELECT name FROM main._formetl_objects WHERE table_name = '"+table+"'")
		if err != nil && !strings.Contains(err.Error(), "does not exist") {
			t.Fatal(err)
		}
		list = append(list, found...)
	}
	slices.Sort(list)
	return list
}

func TestDestination(t *testing.T) {
	client := duckdb.NewClient(t)
	file := filepath.Join(t.TempDir(), "ware 'house.duckdb")
	number := 0
	loadtest.Destination(t, func(t *testing.T) loadtest.Place {
		number++
		table := fmt.Sprintf("t %d", number)
		return loadtest.Place{
			Open:  func() load.Destination { return open(t, file, "main."+table) },
			Names: func() []string { return names(t, client, file, table) },
		}
	})
}

func TestTable(t *testing.T) {
	client := duckdb.NewClient(t)
	loadtest.Table(t, func(t *testing.T) loadtest.TablePlace {
		file := filepath.Join(t.TempDir(), "warehouse.duckdb")
		return loadtest.TablePlace{
			Open:   func() load.Destination { return open(t, file, "forms.Strange \"table") },
			Format: Format(), Name: `forms."Strange ""table"`, Own: "forms._formetl_",
			Query: func(sql string) ([]string, error) {
				if strings.HasPrefix(sql, "CREATE TABLE") {
					sql = "CREATE SCHEMA forms; " + sql
				}
				return client.Query(file, strings.ReplaceAll(sql, "octet_length(", "strlen("))
			},
		}
	})
	t.Logf("the reader found the file locked %d times", client.Refused())
}
