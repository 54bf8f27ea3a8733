package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/formetl/formetl/load/loadtest/pgserver"
)

// database is a database of one life's own on a real PostgreSQL server.
type database struct {
	server *pgserver.Server
	name   string
}

// newDatabase gives a life its database.
func newDatabase(server *pgserver.Server) (*database, error) {
	name, err := server.Create()
	return &database{server, name}, err
}

// dsn is how formetl connects.
func (d *database) dsn() string { return d.server.DSN(d.name, "sslmode=disable") }

// own is how the life looks at it, with all rights.
func (d *database) own() string {
	return fmt.Sprintf("host=%s port=%d user=postgres dbname=%s", d.server.Dir, d.server.Port, d.name)
}

// settle waits until the server is done with the connections of a dead process: what it
// began to commit may be committed yet.
func (d *database) settle() error {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		n, err := d.server.Query("postgres", "SELECT count(*) FROM pg_stat_activity WHERE datname = '"+d.name+"'")
		if err != nil || n == "0\n" {
			return err
		}
	}
	return errors.New("connections of a process that ended stay with the server")
}

// drop removes the database.
func (d *database) drop() error {
	return d.server.Run("postgres", "DROP DATABASE "+d.name+" WITH (FORCE)")
}

// unwritten makes sure that nothing in the database holds a secret.
func (d *database) unwritten(key apiKey) error {
	dump, err := d.server.Command("pg_dump", "-h", d.server.Dir, "-p", fmt.Sprint(d.server.Port), "-U", "postgres", d.name).Output()
	if err == nil && (key.in(dump) || apiKey(pgserver.Password).in(dump)) {
		err = errors.New("the database holds a secret")
	}
	return err
}

// harm removes rows of a table, or all of it.
func (d *database) harm(random *rand.Rand, o *output) (string, *damage, error) {
	if len(o.last.Rows) == 0 {
		return "", nil, nil
	}
	key := ""
	for _, c := range o.last.Manifest.Schema {
		if c.From == "result_id" {
			key = c.Name
		}
	}
	sql := pick(random, fmt.Sprintf("DELETE FROM %s WHERE %q %% %d = %d", o.Dir, key, 2+random.IntN(9), random.IntN(2)), "TRUNCATE "+o.Dir, "DROP TABLE "+o.Dir)
	h := &damage{kind: damageRows, out: o}
	for _, p := range o.last.Manifest.Parts {
		h.full = h.full || p.Undated
	}
	return "does " + sql, h, d.server.Run(d.name, sql)
}
