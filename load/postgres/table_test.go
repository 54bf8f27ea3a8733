package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"

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
	many := answers{}
	for id := range int64(500) {
		many[id+1] = "same"
	}
	b.load(many, "january")
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
	// A full load without changes writes no row.
	if change, err := b.carry(b.table, b.loadOf(b.table, many, "january", true)); err != nil || change != (load.TableChange{}) {
		t.Errorf("a full load changed %+v, err %v", change, err)
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
	rows := []load.TableRows{rowsOf(nil)}
	for made, want := range map[string]string{
		"id bigint PRIMARY KEY, answer text, owner text NOT NULL":             `the column "owner", which must have a value`,
		"id bigint PRIMARY KEY, answer text GENERATED ALWAYS AS ('x') STORED": `the column "answer", whose values PostgreSQL makes itself`,
		"id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, answer text":     `the column "id", whose values PostgreSQL makes itself`,
		"id bigint, answer text": "no unique key of the result's id",
		"answer text":            "no unique key of the result's id",
		"id bigint, answer text, PRIMARY KEY (id, answer)":                                         "no unique key of the result's id",
		"id integer PRIMARY KEY, answer text":                                                      `the column "id" as integer`,
		"id bigint PRIMARY KEY, note text NOT NULL DEFAULT '', n int GENERATED ALWAYS AS IDENTITY": "",
	} {
		b.query("DROP TABLE IF EXISTS forms.feedback; CREATE TABLE forms.feedback (" + made + "); ALTER TABLE forms.feedback OWNER TO loader")
		err := b.open(server.DSN(b.database, "sslmode=disable"), adopt).Fit(t.Context(), rows, false)
		if misfit, ok := errors.AsType[*load.TableError](err); ok != (want != "") || ok && (!strings.Contains(err.Error(), want) || misfit.Hint == "") || !ok && err != nil {
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
}

// TestTypeOfDeletedRows: the values of rows that were deleted softly are nowhere else, so that a
// column of theirs does not change into a type that may not hold them.
func TestTypeOfDeletedRows(t *testing.T) {
	b := newBench(t, func(s *Settings) { s.SoftDelete = true })
	b.load(answers{1: "1", 2: "two"}, "january")
	numbers := rowsOf(nil)
	numbers.Schema = arrow.NewSchema([]arrow.Field{numbers.Schema.Field(0), {Name: "answer", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
	if err := b.table.Fit(t.Context(), []load.TableRows{numbers}, true); err != nil {
		t.Error(err)
	}
	b.load(answers{1: "1"}, "january")
	if err := b.table.Fit(t.Context(), []load.TableRows{numbers}, true); err == nil || !strings.Contains(err.Error(), "values of deleted results") {
		t.Errorf("err = %v", err)
	}
}

// TestRefused: what the server refuses for good leaves everything as it was, and the next load
// is free.
func TestRefused(t *testing.T) {
	b := newBench(t, nil)
	b.load(answers{1: "a", 2: "b"}, "january")
	b.query("ALTER TABLE forms.feedback ADD CONSTRAINT short CHECK (length(answer) < 5)")
	_, err := b.carry(b.table, b.loadOf(b.table, answers{1: "a", 2: "too long"}, "january", false))
	if refusal, ok := errors.AsType[*Refusal](err); !ok || refusal.Code != "23514" || !strings.Contains(err.Error(), "short") {
		t.Errorf("err = %v", err)
	}
	b.holds("1 a, 2 b")
	b.load(answers{1: "a", 2: "b2"}, "january")
	b.holds("1 a, 2 b2")
	b.table = b.open(server.DSN(b.database, "sslmode=disable"), func(s *Settings) {
		s.After = "CREATE INDEX IF NOT EXISTS made ON forms.feedback (answer); SELECT nothing"
	})
	if _, err = b.carry(b.table, b.loadOf(b.table, answers{1: "x"}, "january", false)); err == nil || !strings.Contains(err.Error(), "after") {
		t.Errorf("err = %v", err)
	}
	b.holds("1 a, 2 b2")
	b.table = b.open(server.DSN(b.database, "sslmode=disable"), func(s *Settings) { s.After = "ROLLBACK" })
	if _, err = b.carry(b.table, b.loadOf(b.table, answers{1: "x"}, "january", false)); err == nil || !strings.Contains(err.Error(), "ended the transaction") {
		t.Errorf("err = %v", err)
	}
	b.holds("1 a, 2 b2")
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
	if lacking, err := b.table.Lacking(t.Context(), m); err != nil || len(lacking) > 0 {
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
	if got := b.query("SELECT string_agg(result || ' ' || answer, ', ' ORDER BY result) FROM forms.feedback"); got != "1 a, 2 b" {
		t.Errorf("the table holds %q", got)
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
		if lacking, err := b.table.Lacking(t.Context(), m); err != nil || len(lacking) != want {
			t.Errorf("%s: %d parts lack rows, err %v, want %d", of, len(lacking), err, want)
		}
		b.query("DROP TABLE IF EXISTS forms.feedback; CREATE TABLE forms.feedback AS TABLE forms.kept; ALTER TABLE forms.feedback OWNER TO loader")
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

func isCreate(err error) bool {
	_, ok := errors.AsType[*load.CreateError](err)
	return ok
}

func isHeld(err error) bool {
	_, ok := errors.AsType[*load.HeldError](err)
	return ok
}
