package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/load/loadtest"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/formetl/formetl/load"
)

// TestLoad: a load changes the rows that differ, and touches no other one.
func TestLoad(t *testing.T) {
	b := newBench(t, nil)
	for _, c := range []struct {
		of   answers
		want load.TableChange
		rows string
	}{
		{answers{1: "a", 2: "b", 3: "c"}, load.TableChange{Inserted: 3}, "1 a, 2 b, 3 c"},
		{answers{1: "a", 2: "b", 3: "c"}, load.TableChange{}, "1 a, 2 b, 3 c"},
		{answers{1: "a", 2: "B", 3: "c"}, load.TableChange{Updated: 1}, "1 a, 2 B, 3 c"},
		{answers{1: "a", 3: "c", 4: "d"}, load.TableChange{Inserted: 1, Deleted: 1}, "1 a, 3 c, 4 d"},
	} {
		if got := b.load(c.of, "january"); got != c.want {
			t.Errorf("%v: changed %+v, want %+v", c.of, got, c.want)
		}
		b.holds(c.rows)
	}
	b.load(answers{3: "moved", 9: "z"}, "february")
	b.holds("1 a, 3 moved, 4 d, 9 z")
	if got := b.query("SELECT col_description('forms.feedback'::regclass, 2), obj_description('forms.feedback'::regclass)"); got != "Your answer|Results of the form f" {
		t.Errorf("the comments are %q", got)
	}
}

// TestSoftDelete: the row of a vanished result stays, and lives again when the result does.
func TestSoftDelete(t *testing.T) {
	b := newBench(t, func(s *Settings) { s.SoftDelete, s.Audit = true, true })
	b.load(answers{1: "a", 2: "b"}, "january")
	state := func() string {
		return b.query("SELECT string_agg(id || ' ' || (deleted_at IS NOT NULL) || ' ' || run_id, ', ' ORDER BY id) FROM forms.feedback")
	}
	for _, c := range []struct {
		of   answers
		want string
	}{
		{answers{1: "a"}, "1 false run1, 2 true run2"},
		{answers{1: "a"}, "1 false run1, 2 true run2"},
		{answers{1: "a", 2: "b"}, "1 false run1, 2 false run4"},
		{answers{1: "A", 2: "b"}, "1 false run5, 2 false run4"},
	} {
		if b.load(c.of, "january"); state() != c.want {
			t.Errorf("%v: %s, want %s", c.of, state(), c.want)
		}
	}
}

// TestOneEditIsOneUpdate: triggers fire once, and child tables keep their rows.
func TestOneEditIsOneUpdate(t *testing.T) {
	b := newBench(t, nil)
	many := many(500)
	b.load(many, "january")
	written := func() (rows, size int) {
		for b.query("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND usename = 'loader'") != "0" { //nolint:revive // a session counts when it ends
		}
		_, err := fmt.Sscanf(b.query("SELECT n_tup_ins + n_tup_upd + n_tup_del, pg_relation_size(relid) FROM pg_stat_user_tables WHERE relname = 'feedback'"), "%d|%d", &rows, &size)
		if err != nil {
			t.Fatal(err)
		}
		return rows, size
	}
	before, _ := written()
	b.query(`CREATE TABLE forms.notes (result bigint REFERENCES forms.feedback ON DELETE CASCADE, note text);
		INSERT INTO forms.notes SELECT id, 'n' FROM forms.feedback;
		CREATE TABLE forms.fired (what text);
		CREATE FUNCTION forms.fire() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO forms.fired VALUES (TG_OP); RETURN NULL; END $$;
		CREATE TRIGGER fire AFTER INSERT OR UPDATE OR DELETE ON forms.feedback FOR EACH ROW EXECUTE FUNCTION forms.fire();
		GRANT ALL ON forms.fired TO loader`)
	many[7] = "edited"
	b.load(many, "january")
	for of, want := range map[string]string{"count(*) FROM forms.notes": "500", "string_agg(what, ' ') FROM forms.fired": "UPDATE"} {
		if got := b.query("SELECT " + of); got != want {
			t.Errorf("%s: %s, want %s", of, got, want)
		}
	}
	edited, size := written()
	if edited <= before || edited > before+2 {
		t.Errorf("an edit raises the counters by %d", edited-before)
	}
	// A full load without changes writes no row.
	if change, err := b.carry(b.table, b.loadOf(b.table, many, "january", true)); err != nil || change != (load.TableChange{}) {
		t.Errorf("a full load changed %+v, err %v", change, err)
	}
	if rows, now := written(); rows != edited || now != size {
		t.Errorf("a full load raises the counters by %d and the size by %d", rows-edited, now-size)
	}
}

// TestAdopt: a table that somebody made keeps what it has besides.
func TestAdopt(t *testing.T) {
	b := newBench(t, nil)
	b.query(`CREATE TABLE forms.feedback (id bigint PRIMARY KEY, answer text, note text DEFAULT 'mine', size int GENERATED ALWAYS AS (length(answer)) STORED);
		CREATE INDEX by_answer ON forms.feedback (answer); CREATE VIEW forms.shown AS SELECT answer FROM forms.feedback;
		ALTER TABLE forms.feedback OWNER TO loader`)
	if _, err := b.carry(b.table, b.loadOf(b.table, answers{1: "a"}, "january", false)); !isCreate(err) {
		t.Errorf("a table that formetl did not make is taken: %v", err)
	}
	b.table = b.open(server.DSN(b.database, "sslmode=disable"), func(s *Settings) { s.Adopt = true })
	b.load(answers{1: "a", 2: "bb"}, "january")
	b.query("UPDATE forms.feedback SET note = 'kept' WHERE id = 1")
	if _, err := b.carry(b.table, b.loadOf(b.table, answers{1: "aaa", 2: "bb"}, "january", true)); err != nil {
		t.Fatal(err)
	}
	if got := b.query("SELECT string_agg(concat_ws(' ', id, answer, note, size), ', ' ORDER BY id) FROM forms.feedback"); got != "1 aaa kept 3, 2 bb mine 2" {
		t.Errorf("the table holds %s", got)
	}
}

// TestMisfits: what speaks against a table that is there is found before a load.
func TestMisfits(t *testing.T) {
	b := newBench(t, nil)
	adopt := func(s *Settings) { s.Adopt = true }
	rows := []load.TableRows{rowsOf(nil, arrow.BinaryTypes.String)}
	for made, want := range map[string]string{
		"id bigint PRIMARY KEY, answer text, owner text NOT NULL":             `the column "owner", which needs a value`,
		"id bigint PRIMARY KEY, answer text GENERATED ALWAYS AS ('x') STORED": `the column "answer", which PostgreSQL fills itself`,
		"id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, answer text":     `the column "id", which PostgreSQL fills itself`,
		"id bigint, answer text": `no unique key on ("id")`,
		"answer text":            `no unique key on ("id")`,
		"id bigint, answer text, PRIMARY KEY (id, answer)":                                         `no unique key on ("id")`,
		"id integer PRIMARY KEY, answer text":                                                      `the column "id" with the type integer`,
		"id bigint PRIMARY KEY, note text NOT NULL DEFAULT '', n int GENERATED ALWAYS AS IDENTITY": "",
	} {
		b.query("DROP TABLE IF EXISTS forms.feedback; CREATE TABLE forms.feedback (" + made + "); ALTER TABLE forms.feedback OWNER TO loader")
		err := b.open(server.DSN(b.database, "sslmode=disable"), adopt).Fit(t.Context(), rows, false)
		if misfit, ok := errors.AsType[*load.Error](err); ok != (want != "") || ok && (!strings.Contains(err.Error(), want) || misfit.Remedy == "") || !ok && err != nil {
			t.Errorf("%s: %v", made, err)
		}
	}
	// Who keeps rows of vanished results needs no right to delete.
	b.query("DROP TABLE forms.feedback; CREATE TABLE forms.feedback (id bigint PRIMARY KEY, answer text, deleted_at timestamptz); GRANT SELECT, INSERT, UPDATE ON forms.feedback TO loader")
	for softly, want := range map[bool]bool{true: true, false: false} {
		err := b.open(server.DSN(b.database, "sslmode=disable"), func(s *Settings) { s.Adopt, s.SoftDelete = true, softly }).Fit(t.Context(), rows, false)
		if (err == nil) != want {
			t.Errorf("softly %t: %v", softly, err)
		}
	}
	b.query("GRANT ALL ON forms.feedback TO loader; ALTER TABLE forms.feedback ENABLE ROW LEVEL SECURITY; CREATE POLICY all_rows ON forms.feedback USING (id > 5)")
	if err := b.open(server.DSN(b.database, "sslmode=disable"), adopt).Fit(t.Context(), rows, false); err == nil || !strings.Contains(err.Error(), "row level security") {
		t.Errorf("rows that a policy hides: %v", err)
	}
	b.query("ALTER SCHEMA forms RENAME TO gone")
	if err := b.table.Fit(t.Context(), rows, false); err == nil || !strings.Contains(loadtest.Told(err), `schema forms does not exist (SQLSTATE 3F000); run CREATE SCHEMA "forms" AUTHORIZATION "loader", or`) {
		t.Errorf("without the schema: %v", err)
	}
}

// TestTypeOfDeletedRows: the values of rows that were deleted softly are nowhere else, so that a
// column of theirs does not change into a type that may not hold them.
func TestTypeOfDeletedRows(t *testing.T) {
	b := newBench(t, func(s *Settings) { s.SoftDelete = true })
	b.load(answers{1: "1", 2: "two"}, "january")
	numbers := rowsOf(nil, arrow.PrimitiveTypes.Int64)
	if err := b.table.Fit(t.Context(), []load.TableRows{numbers}, true); err != nil {
		t.Error(err)
	}
	b.load(answers{1: "1"}, "january")
	for _, kind := range []arrow.DataType{arrow.ListOf(arrow.BinaryTypes.String), arrow.BinaryTypes.String} {
		l := b.loadOf(b.table, answers{1: "1"}, "january", true)
		l.Rows[0] = rowsOf(answers{1: null}, kind)
		if _, err := b.carry(b.table, l); err != nil {
			t.Fatal(err)
		}
		if got := b.query("SELECT answer FROM forms.feedback WHERE id = 2"); got != "two" && got != "{two}" {
			t.Errorf("as %s the deleted row holds %q", kind, got)
		}
	}
	if err := b.table.Fit(t.Context(), []load.TableRows{numbers}, true); err == nil || !strings.Contains(err.Error(), "values of deleted results") {
		t.Errorf("err = %v", err)
	}
}

// TestRefused: what the server refuses for good leaves everything as it was, and says which
// object is in the way. The next load without it is right.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		is, mend   string // SQL
		of         answers
		kind       arrow.DataType // of the answers
		code, says string
		hint       string
		want       string
	}{
		"check": {
			"ALTER TABLE forms.feedback ADD CONSTRAINT short CHECK (length(answer) < 5)", "ALTER TABLE forms.feedback DROP CONSTRAINT short",
			answers{1: "a", 2: "too long"},
			nil, "23514", "short", "change that constraint", "1 a, 2 too long",
		},
		"not null": {
			"ALTER TABLE forms.feedback ALTER answer SET NOT NULL", "ALTER TABLE forms.feedback ALTER answer DROP NOT NULL",
			answers{1: "A", 2: null},
			nil, "23502", `"answer"`, "change that constraint", "1 A, ",
		},
		"foreign key": {
			"CREATE TABLE forms.notes (result bigint REFERENCES forms.feedback ON DELETE RESTRICT); INSERT INTO forms.notes VALUES (2)", "DELETE FROM forms.notes",
			answers{1: "A"},
			nil, "23503", `"notes"`, "change that constraint", "1 A",
		},
		"view": {
			"CREATE VIEW forms.shown AS SELECT answer FROM forms.feedback", "DROP VIEW forms.shown",
			answers{1: "7", 2: "8"},
			arrow.PrimitiveTypes.Int64, "", "forms.shown", "drop the view", "1 7, 2 8",
		},
		"generated column": {
			"ALTER TABLE forms.feedback ADD size int GENERATED ALWAYS AS (length(answer)) STORED", "ALTER TABLE forms.feedback DROP size",
			answers{1: "7", 2: "8"},
			arrow.PrimitiveTypes.Int64, "0A000", "generated column", "drop what depends", "1 7, 2 8",
		},
		"a policy hides the row of an edit": {
			"ALTER TABLE forms.feedback ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY; CREATE POLICY p ON forms.feedback USING (id <> 2) WITH CHECK (true)",
			"ALTER TABLE forms.feedback NO FORCE ROW LEVEL SECURITY",
			answers{1: "a", 2: "B"},
			nil, "42501", `"feedback"`, "BYPASSRLS", "1 a, 2 B",
		},
		"a policy hides a vanished row": {
			"ALTER TABLE forms.feedback ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY; CREATE POLICY p ON forms.feedback USING (id <> 2) WITH CHECK (true)",
			"ALTER ROLE loader BYPASSRLS",
			answers{1: "a"},
			nil, "42501", `"feedback"`, "BYPASSRLS", "1 a",
		},
		"a policy refuses rows": {
			"ALTER TABLE forms.feedback ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY; CREATE POLICY p ON forms.feedback USING (true) WITH CHECK (id < 3)",
			"ALTER TABLE forms.feedback DISABLE ROW LEVEL SECURITY",
			answers{1: "a", 2: "b", 3: "c"},
			nil, "42501", `"feedback"`, "NO FORCE", "1 a, 2 b, 3 c",
		},
		"disk": {
			"CREATE TABLESPACE small LOCATION 'FOLDER'; ALTER TABLE forms.feedback SET TABLESPACE small",
			"ALTER TABLE forms.feedback SET TABLESPACE pg_default; DROP TABLESPACE small", many(3000), nil, "53100", "No space left", "free some space", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			b.load(answers{1: "a", 2: "b"}, "january")
			if name == "disk" {
				c.is = strings.Replace(c.is, "FOLDER", smallDisk(t), 1)
			}
			b.query(c.is)
			defer func() { b.query("ALTER ROLE loader NOBYPASSRLS") }()
			again := func() error {
				l := b.loadOf(b.table, c.of, "january", c.kind != nil)
				if c.kind != nil {
					l.Rows[0] = rowsOf(c.of, c.kind)
				}
				_, err := b.carry(b.table, l)
				return err
			}
			err := again()
			refusal, ok := errors.AsType[*load.Refusal](err)
			if ok != (c.code != "") || ok && (refusal.Code != "SQLSTATE "+c.code || !strings.Contains(err.Error(), "(SQLSTATE "+c.code+")")) {
				t.Errorf("err = %v, want SQLSTATE %s", err, c.code)
			}
			if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(loadtest.Told(err), c.hint) {
				t.Errorf("err = %v, want %q and %q", err, c.says, c.hint)
			}
			b.holds("1 a, 2 b")
			b.query(c.mend)
			if err := again(); err != nil {
				t.Fatal(err)
			}
			if c.want != "" {
				b.holds(c.want)
			} else if got := b.query("SELECT count(*) FROM forms.feedback"); got != fmt.Sprint(len(c.of)) {
				t.Errorf("%s rows", got)
			}
		})
	}
}

// smallDisk mounts a disk of 256 kB for the server, which only root may.
func smallDisk(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(server.Dir, "small")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", "size=256k,uid=65534", "none", folder).CombinedOutput(); err != nil {
		t.Skipf("no disk can be mounted: %v %s", err, out)
	}
	t.Cleanup(func() { _ = exec.CommandContext(context.Background(), "umount", "-l", folder).Run() })
	return folder
}

// many are answers that fill a small disk.
func many(n int64) answers {
	of := answers{}
	for id := range n {
		of[id+1] = "an answer of some length, of which three thousand are too many"
	}
	return of
}

// TestAfter: SQL that fails, or that ends the transaction, leaves everything as it was.
func TestAfter(t *testing.T) {
	b := newBench(t, nil)
	b.load(answers{1: "a", 2: "b2"}, "january")
	for after, want := range map[string]string{
		"CREATE INDEX IF NOT EXISTS made ON forms.feedback (answer);\nSELECT nothing": "failed at line 2",
		"GRANT SELCT ON forms.feedback TO loader":                                     "unrecognized privilege type",
		"ROLLBACK":           "ended the transaction",
		"ROLLBACK; BEGIN":    "ended the transaction",
		"ROLLBACK AND CHAIN": "ended the transaction",
	} {
		b.table = b.open(server.DSN(b.database, "sslmode=disable"), func(s *Settings) { s.After = after })
		_, err := b.carry(b.table, b.loadOf(b.table, answers{1: "x"}, "january", false))
		if !errors.Is(err, load.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: err = %v", after, err)
		}
		b.holds("1 a, 2 b2")
	}
}

// TestSkippedRows: a trigger that leaves rows out ends the load.
func TestSkippedRows(t *testing.T) {
	b := newBench(t, nil)
	b.load(answers{1: "a"}, "january")
	b.query(`CREATE FUNCTION forms.skip() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
		CREATE TRIGGER skip BEFORE INSERT ON forms.feedback FOR EACH ROW WHEN (new.id > 1) EXECUTE FUNCTION forms.skip()`)
	if _, err := b.carry(b.table, b.loadOf(b.table, answers{1: "b", 2: "b"}, "january", false)); err == nil || !strings.Contains(err.Error(), "does not get all rows") {
		t.Errorf("err = %v", err)
	}
	b.holds("1 a")
}

// TestLostColumn: a column that somebody dropped comes back by a full load, with its values.
func TestLostColumn(t *testing.T) {
	b := newBench(t, nil)
	b.load(answers{1: "a", 2: "b"}, "january")
	b.query("ALTER TABLE forms.feedback DROP answer")
	if _, err := b.carry(b.table, b.loadOf(b.table, answers{1: "a"}, "january", false)); err == nil || !strings.Contains(err.Error(), `no longer has the column "answer"`) {
		t.Errorf("err = %v", err)
	}
	if _, err := b.carry(b.table, b.loadOf(b.table, answers{1: "a", 2: "b"}, "january", true)); err != nil {
		t.Error(err)
	}
	b.holds("1 a, 2 b")
}

// TestLostElements: rows of a list that are gone are missed until all of them are there again, and
// a list that was not exploded for a while is taken over again.
func TestLostElements(t *testing.T) {
	b := newBench(t, nil)
	colours := map[int64][]string{1: {"red", "blue"}, 2: {"green"}}
	lists := func(of answers, full bool) {
		t.Helper()
		if _, err := b.carry(b.table, withLists(b.loadOf(b.table, of, "january", full), colours)); err != nil {
			t.Fatal(err)
		}
	}
	lacks := func(want bool) {
		t.Helper()
		m, _, err := b.table.Last(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if lacking, lists, err := b.table.Lacking(t.Context(), m); err != nil || len(lacking) > 0 || (strings.Join(lists, " ") == "forms.feedback__colours") != want {
			t.Errorf("%d parts and the lists %q lack rows, err %v", len(lacking), lists, err)
		}
	}
	lists(answers{1: "a", 2: "b"}, false)
	b.load(answers{9: "z"}, "february")
	lists(answers{1: "a", 2: "b"}, false)
	lacks(false)
	b.query("DROP TABLE forms.feedback__colours")
	lacks(true)
	colours = map[int64][]string{1: {"red", "blue"}} // the result 2 was not read again
	lists(answers{1: "a"}, false)
	lacks(true)
	colours[2] = []string{"green"}
	lists(answers{1: "a", 2: "b"}, true)
	lacks(false)

	b = newBench(t, nil)
	lists(answers{1: "a", 2: "b"}, false)
	b.query("DELETE FROM forms.feedback__colours")
	colours[1] = []string{"red"} // edited meanwhile
	lists(answers{1: "a", 2: "b"}, false)
	lacks(false)
	b.table = b.open(server.DSN(b.database, "sslmode=disable"), func(s *Settings) { s.SoftDelete, s.Audit = true, true })
	lists(answers{1: "a"}, false) // the list's table gets their columns only now
	lacks(false)
}

// TestLater: what a definition says only later.
func TestLater(t *testing.T) {
	b := newBench(t, nil)
	b.load(answers{1: "a", 2: "b"}, "january")
	b.table = b.open(server.DSN(b.database, "sslmode=disable"), func(s *Settings) { s.SoftDelete = true })
	m, _, err := b.table.Last(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if lacking, _, err := b.table.Lacking(t.Context(), m); err != nil || len(lacking) > 0 {
		t.Errorf("%d parts lack rows, err %v", len(lacking), err)
	}
	b.load(answers{1: "a"}, "january")
	if got := b.query("SELECT id FROM forms.feedback WHERE deleted_at IS NOT NULL"); got != "2" {
		t.Errorf("deleted softly: %q", got)
	}
	soft := b.table
	b.table = b.open(server.DSN(b.database, "sslmode=disable"), nil)
	b.load(answers{1: "a", 2: "b"}, "january")
	if got := b.query("SELECT count(*) FROM forms.feedback WHERE deleted_at IS NOT NULL"); got != "0" {
		t.Errorf("%s rows are deleted softly after they came back", got)
	}
	b.table = soft
	renamed := b.loadOf(b.table, answers{1: "a"}, "january", true)
	schema := arrow.NewSchema([]arrow.Field{{Name: "result", Type: arrow.PrimitiveTypes.Int64}, {Name: "answer", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	each := renamed.Rows[0].Each
	renamed.Rows[0].Schema, renamed.Rows[0].Columns[0].Name = schema, "result"
	renamed.Rows[0].Each = func(ctx context.Context, visit func(arrow.RecordBatch) error) error {
		return each(ctx, func(r arrow.RecordBatch) error { return visit(array.NewRecordBatch(schema, r.Columns(), r.NumRows())) })
	}
	if _, err := b.carry(b.table, renamed); err != nil {
		t.Fatal(err)
	}
	const rows = "SELECT string_agg(result || ' ' || coalesce(answer, '-'), ', ' ORDER BY result) FROM forms.feedback"
	if got := b.query(rows); got != "1 a, 2 b" {
		t.Errorf("the table holds %q", got)
	}
	// By another pii rule, what a deleted result answered is nowhere any more.
	if _, renamed.Version, err = b.table.Last(t.Context()); err != nil {
		t.Fatal(err)
	}
	renamed.Manifest.RunID = "stricter"
	renamed.Manifest.Schema = slices.Clone(renamed.Manifest.Schema)
	renamed.Manifest.Schema[1].PII = "redact"
	if _, err := b.carry(b.table, renamed); err != nil {
		t.Fatal(err)
	}
	if got := b.query(rows); got != "1 a, 2 -" {
		t.Errorf("after a stricter rule the table holds %q", got)
	}
}

// TestLackingRows: rows that somebody removed are missed.
func TestLackingRows(t *testing.T) {
	b := newBench(t, nil)
	b.load(answers{1: "a", 2: "b"}, "january")
	b.load(answers{3: "c"}, "february")
	for of, want := range map[string]int{"DELETE FROM forms.feedback WHERE id = 2": 1, "TRUNCATE forms.feedback": 2, "DROP TABLE forms.feedback": 2} {
		b.query("BEGIN; CREATE TABLE IF NOT EXISTS forms.kept AS TABLE forms.feedback; COMMIT")
		b.query(of)
		m, _, err := b.table.Last(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if lacking, _, err := b.table.Lacking(t.Context(), m); err != nil || len(lacking) != want {
			t.Errorf("%s: %d parts lack rows, err %v, want %d", of, len(lacking), err, want)
		}
		b.query("DROP TABLE IF EXISTS forms.feedback; CREATE TABLE forms.feedback AS TABLE forms.kept; ALTER TABLE forms.feedback OWNER TO loader")
	}
}

// TestNotes: what a load notes of parts and dead letters is read as it was written, and other
// loads leave it. The manifest is amended only by its version.
func TestNotes(t *testing.T) {
	b := newBench(t, nil)
	b.load(answers{9: "z"}, "undated")
	day := func(n int) load.WallTime { return load.Wall(time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC)) }
	l := b.loadOf(b.table, answers{3: "a", 2: "b"}, "january", false)
	p := &l.Parts[0]
	p.From, p.To, p.Rejected, p.Letters = day(1), day(2), 2, []byte("{\"b\": 2}\n{\"a\": 1}\n")
	l.Manifest.Parts[0], l.Manifest.Rejected, l.Manifest.Watermark = p.Part, 2, day(2)
	if _, err := b.carry(b.table, l); err != nil {
		t.Fatal(err)
	}
	b.load(answers{9: "other"}, "undated")
	m, version, err := b.table.Last(t.Context())
	if err != nil || len(m.Parts) != 2 || m.Parts[1] != p.Part {
		t.Fatalf("the manifest is %+v, %v, want the part %+v", m, err, p.Part)
	}
	if got, err := b.table.Letters(t.Context(), p.Part); err != nil || string(got) != string(p.Letters) {
		t.Errorf("the dead letters are %q, %v", got, err)
	}
	m.Watermark = day(5)
	for _, want := range []error{nil, load.ErrConflict} {
		if err := b.table.Amend(t.Context(), m, version); !errors.Is(err, want) {
			t.Errorf("amended: %v, want %v", err, want)
		}
	}
	b.load(answers{3: "a", 2: "b"}, "january") // nothing is rejected now
	if got, err := b.table.Letters(t.Context(), p.Part); err != nil || got != nil {
		t.Errorf("the dead letters are still %q, %v", got, err)
	}
}

// TestNames: what PostgreSQL would cut off, refuse or take for another column is refused before.
func TestNames(t *testing.T) {
	long, many := strings.Repeat("é", 32), make([]string, maxColumns+1) // 64 bytes
	for i := range many {
		many[i] = fmt.Sprint("c", i)
	}
	for want, c := range map[string][]string{ // the table, then its columns
		"name of more than":             {long + ".feedback"},
		"name of more than 63 bytes":    {"forms." + long},
		"1601 columns":                  append([]string{"forms.feedback"}, many...),
		`é" with more than`:             {"forms.feedback", "a", long},
		"name that PostgreSQL reserves": {"forms.feedback", "a", "ctid"},
		`"a" twice`:                     {"forms.feedback", "a", "b", "a"},
		"nil":                           append([]string{"forms." + long[1:]}, many[1:]...),
	} {
		if err := CheckNames(c[0], c[1:]); !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s with %d columns: %v, want %q", c[0], len(c)-1, err, want)
		}
	}
}

// TestOldLoad: a load that began from another manifest, or without the lease, changes nothing.
func TestOldLoad(t *testing.T) {
	b := newBench(t, nil)
	b.load(answers{1: "a"}, "january")
	old := b.loadOf(b.table, answers{1: "old"}, "january", false)
	b.load(answers{1: "new"}, "january")
	if _, err := b.carry(b.table, old); !errors.Is(err, load.ErrConflict) {
		t.Errorf("err = %v", err)
	}
	if _, err := b.table.Load(t.Context(), b.loadOf(b.table, answers{1: "unleased"}, "january", false)); !isHeld(err) {
		t.Errorf("err = %v", err)
	}
	b.holds("1 new")
}

// TestRenewedLease: a renewal begins the lease's time anew. A lease that another has taken or
// renewed is not renewed, and those of other tables stay.
func TestRenewedLease(t *testing.T) {
	b := newBench(t, nil)
	held, err := b.table.Acquire(t.Context(), "", load.Holder{RunID: "run1"})
	if err != nil {
		t.Fatal(err)
	}
	b.query("UPDATE formetl.leases SET renewed_at = renewed_at - interval '1 hour'; INSERT INTO formetl.leases VALUES ('other', 1, now(), '{}')")
	row := leaseRow{b.table}
	r, version, old, err := row.Read(t.Context())
	if err != nil || old < time.Hour {
		t.Errorf("aged %s, err %v", old, err)
	}
	written, err := row.Write(t.Context(), r, version)
	_, is, young, other := row.Read(t.Context())
	if err != nil || other != nil || is != written || young > time.Minute {
		t.Errorf("aged %s, version %s, err %v, %v; written %s", young, is, err, other, written)
	}
	for _, stale := range []string{version, load.NoVersion} {
		if _, err := row.Write(t.Context(), r, stale); !errors.Is(err, load.ErrConflict) {
			t.Errorf("by version %q: %v", stale, err)
		}
	}
	if err := held.Release(t.Context()); err != nil || b.query("SELECT dataset, version FROM formetl.leases") != "other|1" {
		t.Errorf("err %v, leases %s", err, b.query("SELECT * FROM formetl.leases"))
	}
}

func isCreate(err error) bool {
	ok := errors.Is(err, load.ErrUnusable)
	return ok
}

func isHeld(err error) bool {
	_, ok := errors.AsType[*load.HeldError](err)
	return ok
}
