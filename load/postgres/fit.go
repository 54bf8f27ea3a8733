package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/jackc/pgx/v5"

	"github.com/formetl/formetl/load"
)

// What PostgreSQL allows (manual, "Limits" and "System Columns").
const (
	maxName    = 63 // bytes of a name; PostgreSQL cuts off the rest
	maxColumns = 1600
)

// systemColumns are names of PostgreSQL's own columns, which no other column may have.
var systemColumns = []string{"tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"}

// column is a column of a table of the database.
type column struct {
	name, kind string // kind is the column's type, as the server prints it
	comment    string
	computed   bool // the server computes the column's values, so none can be given
	needed     bool // a row cannot be inserted without a value for this column
}

// target is a table that a load writes rows to: that of the results, or of an exploded list.
type target struct {
	schema, table string
	list          string   // the exploded list whose elements the table holds, "" for results
	temporary     string   // the temporary table with the rows of this load
	columns       []column // the columns of the rows to load
	id            string   // name of the column with the result's id
	within        []string // names of the columns that are the key with it; none for results
	softly        bool     // the table has the column deleted_at
	owned         bool     // the database role owns the table, which exists already
	dropped       []string // columns that earlier loads wrote and this load does not
}

func (t *target) sql() string { return quote(t.schema, t.table) }

// misfit returns the error of a table that the rows of a load do not fit into.
func (t *target) misfit(hint, problem string, args ...any) error {
	return unfit(t.schema+"."+t.table, hint, problem, args...)
}

// unfit returns the error of a table that cannot hold the results as they are declared, or
// that is not as formetl made it.
func unfit(table, hint, problem string, args ...any) error {
	return &load.Error{Kind: load.ErrConfig, Op: "use", Path: "the table " + table, Err: fmt.Errorf("it "+problem, args...), Remedy: hint}
}

// temp returns the temporary table, as SQL names it.
func (t *target) temp() string { return quote("pg_temp", t.temporary) }

// key lists the columns of the table's unique key for SQL, each behind a prefix such as "t.".
func (t *target) key(prefix string) string {
	key := prefix + quote(t.id)
	for _, name := range t.within {
		key += ", " + prefix + quote(name)
	}
	return key
}

// same returns the SQL condition that a row of the table t and one of the temporary table n
// have equal keys.
func (t *target) same() string {
	same := "t." + quote(t.id) + " = n." + quote(t.id)
	for _, name := range t.within {
		same += " AND t." + quote(name) + " = n." + quote(name)
	}
	return same
}

// CheckNames returns an error if PostgreSQL does not take the name of the table or of a
// column. It needs no server. The error is a load.ErrConfig.
func CheckNames(table string, columns []string) error {
	schema, name, _ := strings.Cut(table, ".")
	if len(schema) > maxName || len(name) > maxName {
		return unfit(table, "write a shorter table: in the definition, such as forms.feedback", "has a name of more than %d bytes, which PostgreSQL would cut", maxName)
	}
	if len(columns) > maxColumns {
		return unfit(table, "leave columns out of the schema (unknown: ignore)", "has %d columns, but PostgreSQL allows %d", len(columns), maxColumns)
	}
	seen := map[string]bool{}
	for _, c := range columns {
		switch {
		case len(c) > maxName:
			return unfit(table, "give the column a shorter name in the schema", "has the column %q with more than %d bytes, which PostgreSQL would cut", c, maxName)
		case slices.Contains(systemColumns, c):
			return unfit(table, "give the column another name in the schema", "has the column %q, a name that PostgreSQL reserves", c)
		case seen[c]:
			return unfit(table, "give one of them another name in the schema", "has the column %q twice", c)
		}
		seen[c] = true
	}
	return nil
}

// targetOf describes the table that rows of a load go to: that of the results or of a list.
func (t *Table) targetOf(r load.TableRows) (*target, error) {
	to := &target{schema: t.schema, table: t.tableOf(r.List), list: r.List, within: r.Key}
	names := make([]string, 0, len(r.Columns))
	for i, f := range r.Schema.Fields() {
		c := column{name: f.Name, kind: typeOf(f.Type), comment: r.Columns[i].Label}
		if choices := r.Columns[i].Choices; len(choices) > 0 {
			c.comment += "\nChoices: " + strings.Join(choices, "; ")
		}
		to.columns, names = append(to.columns, c), append(names, c.name)
		if r.Columns[i].From == "result_id" && f.Type.ID() == arrow.INT64 && to.id == "" {
			to.id = f.Name
		}
	}
	for _, c := range t.extras() {
		names = append(names, c.name)
	}
	if to.id == "" {
		return nil, unfit(t.dataset(), "add a column to the schema: {name: id, from: result_id, type: int64}", "has no column with the result's id, which a run needs to find the rows to change")
	}
	return to, CheckNames(to.schema+"."+to.table, names)
}

// Names of the columns that formetl adds to those of the results.
const (
	deletedAt = "deleted_at"
	loadedAt  = "loaded_at"
	runID     = "run_id"
)

// extras are the columns that formetl adds to those of the results: deleted_at with
// SoftDelete, loaded_at and run_id with Audit.
func (t *Table) extras() (extras []column) {
	if t.SoftDelete {
		extras = append(extras, column{name: deletedAt, kind: "timestamp with time zone"})
	}
	if t.Audit {
		extras = append(extras, column{name: loadedAt, kind: "timestamp with time zone"}, column{name: runID, kind: "text"})
	}
	return extras
}

// columnsOf returns the columns of a table, none if the table does not exist.
func (t *Table) columnsOf(ctx context.Context, q querier, table string) ([]column, error) {
	rows, err := q.Query(ctx, `SELECT attname, format_type(atttypid, atttypmod), coalesce(col_description(attrelid, attnum), ''),
		attgenerated <> '' OR attidentity = 'a', attnotnull AND NOT atthasdef AND attidentity = ''
		FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped ORDER BY attnum`, table)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (c column, err error) {
		err = row.Scan(&c.name, &c.kind, &c.comment, &c.computed, &c.needed)
		return c, err
	})
}

// changes returns the SQL statements that make the table fit the rows of a load. full tells
// that all rows are replaced, so that types of columns may change.
func (t *Table) changes(ctx context.Context, q querier, to *target, k known, full bool) (statements []string, err error) {
	before := k.manifest
	there, err := t.columnsOf(ctx, q, to.sql())
	if err != nil {
		return nil, err
	}
	key := []string{to.id} // the column with the ids, by its name in the table now
	named := func(name string) func(column) bool { return func(c column) bool { return c.name == name } }
	if before != nil { // the column with the ids may have another name now
		was, err := idOf(before)
		if err != nil {
			return nil, err
		}
		if at := slices.IndexFunc(there, named(was)); at >= 0 && !slices.ContainsFunc(there, named(to.id)) {
			statements = append(statements, "ALTER TABLE "+to.sql()+" RENAME COLUMN "+quote(was)+" TO "+quote(to.id))
			there[at].name, key[0] = to.id, was
		}
	}
	marks := slices.ContainsFunc(there, named(deletedAt))
	to.softly = t.SoftDelete || !t.Adopt && marks
	wanted := slices.Concat(to.columns, t.extras())
	if len(there) == 0 {
		defined := make([]string, len(wanted))
		for i, c := range wanted {
			defined[i] = quote(c.name) + " " + c.kind
		}
		statements = append(statements, "CREATE TABLE "+to.sql()+" ("+strings.Join(defined, ", ")+", PRIMARY KEY ("+to.key("")+"))")
	} else if _, was := k.lists[to.list]; !was && !to.madeBy(before) && !t.Adopt {
		return nil, &load.Error{
			Kind: load.ErrUnusable, Op: "use", Path: t.address + "/" + to.schema + "." + to.table + "/", Remedy: "choose another table, or rename or drop this one; or write adopt: true to load into it (also if formetl made it, but its records in the schema " + t.Control + " were lost)",
			Err: errors.New("the table already exists, and formetl did not create it"),
		}
	} else if err := t.takesRows(ctx, q, to, there, key); err != nil {
		return nil, err
	}
	var alter, comments []string
	for i, c := range wanted {
		at := slices.IndexFunc(there, named(c.name))
		switch {
		case len(there) == 0:
		case at < 0 && i < len(to.columns) && to.madeBy(before) && !full && to.had(before, c.name):
			return nil, to.misfit("run with --full, which fills it again, or restore the column", "no longer has the column %q", c.name)
		case at < 0:
			alter = append(alter, "ADD COLUMN "+quote(c.name)+" "+c.kind)
		case there[at].kind == c.kind:
		case !to.madeBy(before) || !full:
			hint := "run with --full to change the column's type, or write the old type into the schema"
			if t.Adopt {
				hint = "change the column's type in the database, or write that type into the schema"
			}
			return nil, to.misfit(hint, "has the column %q with the type %s, but the schema needs %s", c.name, there[at].kind, c.kind)
		default:
			using, err := t.cast(ctx, q, to, c, there[at].kind, marks)
			if err != nil {
				return nil, err
			}
			alter = append(alter, "ALTER COLUMN "+quote(c.name)+" TYPE "+c.kind+" USING "+using)
		}
		// An adopted table keeps its comments, and only the owner may change them.
		if c.comment != "" && (at < 0 || to.owned && !t.Adopt && there[at].comment != c.comment) {
			comments = append(comments, "COMMENT ON COLUMN "+to.sql()+"."+quote(c.name)+" IS "+literal(c.comment))
		}
	}
	if len(alter) > 0 {
		statements = append(statements, "ALTER TABLE "+to.sql()+" "+strings.Join(alter, ", "))
	}
	if before != nil && to.list == "" {
		for _, was := range before.Schema {
			if slices.ContainsFunc(there, named(was.Name)) && !slices.ContainsFunc(wanted, named(was.Name)) {
				to.dropped = append(to.dropped, was.Name)
			}
		}
	}
	return append(statements, comments...), nil
}

// madeBy tells whether formetl made the table by its last load.
func (t *target) madeBy(before *load.Manifest) bool {
	return before != nil && (t.list == "" || t.list == load.FilesTable && before.Files || slices.ContainsFunc(before.Schema, func(c load.Column) bool { return c.Explode && c.Name == t.list }))
}

// had tells whether the last load wrote the column with this name to the table.
func (t *target) had(before *load.Manifest, name string) bool {
	return t.list != "" || slices.ContainsFunc(before.Schema, func(c load.Column) bool { return c.Name == name })
}

// takesRows returns an error where rows cannot be found or inserted in a table that is there: it
// needs a unique key of the ids, and no column that a load must leave out. It also tells whether
// the role owns the table.
func (t *Table) takesRows(ctx context.Context, q querier, to *target, there []column, key []string) error {
	for _, c := range there {
		loads := slices.ContainsFunc(slices.Concat(to.columns, t.extras()), func(w column) bool { return w.name == c.name })
		switch {
		case loads && c.computed:
			return to.misfit("make it an ordinary column in the database, or give the column another name in the schema", "has the column %q, which PostgreSQL fills itself (a generated column)", c.name)
		case !loads && c.needed:
			return to.misfit("give it a default in the database, or drop NOT NULL", "has the column %q, which needs a value (NOT NULL) but is not in the schema", c.name)
		}
	}
	key = append(key, to.within...)
	unique := false
	err := q.QueryRow(ctx, `SELECT (SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = to_regclass($1)), EXISTS (SELECT FROM pg_index WHERE indrelid = to_regclass($1) AND indisunique AND indisvalid AND indpred IS NULL AND indexprs IS NULL AND
		(SELECT array_agg(attname::text ORDER BY attname) FROM pg_attribute WHERE attrelid = indrelid AND attnum = ANY((indkey::int2[])[0:indnkeyatts-1])) = (SELECT array_agg(k ORDER BY k::name) FROM unnest($2::text[]) k))`,
		to.sql(), key).Scan(&to.owned, &unique)
	if err == nil && !unique {
		err = to.misfit("run ALTER TABLE "+to.sql()+" ADD PRIMARY KEY ("+to.key("")+")", "has no unique key on (%s), which a load needs to find rows", to.key(""))
	}
	return err
}

// cast returns the SQL that turns a column's values into another type, or into nulls if that
// may fail.
// A full load brings the values of all results, but for those that were deleted softly, if the
// table keeps these. No view may use the column.
func (t *Table) cast(ctx context.Context, q querier, to *target, c column, was string, softly bool) (using string, err error) {
	misfit := func(hint, problem string) error {
		return to.misfit(hint, "has the column %q, %s, so its type cannot become %s", c.name, problem, c.kind)
	}
	name := quote(c.name)
	var view string
	err = q.QueryRow(ctx, `SELECT coalesce(min(r.ev_class::regclass::text), '') FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
		WHERE d.classid = 'pg_rewrite'::regclass AND d.refobjid = to_regclass($1) AND a.attname = $2 AND r.ev_class <> d.refobjid`, to.sql(), c.name).Scan(&view)
	switch {
	case err != nil:
		return "", err
	case view != "":
		return "", misfit("drop the view, run again, and create it anew (the SQL file that after: names can do that), or keep the column's type in the schema", "which the view "+view+" shows")
	case c.kind == "text" && was == "text[]":
		return "CASE WHEN cardinality(" + name + ") = 1 THEN " + name + "[1] ELSE array_to_json(" + name + ")::text END", nil
	case c.kind == "text[]" && was == "text":
		return "CASE WHEN " + name + " IS NOT NULL THEN ARRAY[" + name + "] END", nil
	case c.kind == "text", was == "bigint" && (c.kind == "double precision" || strings.HasPrefix(c.kind, "numeric")):
		return name + "::" + c.kind, nil
	case softly:
		deleted := false
		err = q.QueryRow(ctx, "SELECT EXISTS (SELECT FROM "+to.sql()+" WHERE deleted_at IS NOT NULL AND "+name+" IS NOT NULL)").Scan(&deleted)
		if err == nil && deleted {
			err = misfit("delete the rows in which deleted_at has a time, or change the column's type and values in the database yourself", "with the type "+was+" and values of deleted results")
		}
	}
	return "NULL::" + c.kind, err
}

// alter changes the table, in the load's transaction, so that the rows of the load fit.
func (l *loading) alter(ctx context.Context, to *target, before known) error {
	statements, err := l.changes(ctx, l.tx, to, before, l.load.Full)
	if err != nil {
		return err
	}
	if len(statements) > 0 && strings.HasPrefix(statements[0], "CREATE TABLE") {
		comment := "Results of the form " + l.load.Manifest.Form
		if to.list != "" {
			comment = "The list " + to.list + " of the results of the form " + l.load.Manifest.Form
		}
		statements = append(statements, "COMMENT ON TABLE "+to.sql()+" IS "+literal(comment))
	}
	for _, statement := range statements {
		if _, err := l.tx.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// Fit returns the error that a load of these rows would end with, as far as it can be known before.
func (t *Table) Fit(ctx context.Context, rows []load.TableRows, full bool) error {
	return t.with(ctx, "use", func(c *pgx.Conn) error {
		_, tables, err := t.ready(ctx, c)
		var before known
		if err == nil && tables {
			before, err = t.last(ctx, c, "")
		}
		if err != nil {
			return err
		}
		for _, r := range rows {
			to, err := t.targetOf(r)
			if err != nil {
				return err
			}
			statements, err := t.changes(ctx, c, to, before, full)
			if err != nil {
				return err
			}
			if err := t.allowed(ctx, c, to, len(statements) > 0); err != nil {
				return err
			}
		}
		return nil
	})
}

// allowed returns an error if the role may not do what a load does: change the table's rows
// and, with changes, the table itself.
func (t *Table) allowed(ctx context.Context, c *pgx.Conn, to *target, changes bool) error {
	var schema, table, rows, owner, create, hidden bool
	err := c.QueryRow(ctx, `SELECT to_regnamespace($1) IS NOT NULL, to_regclass($2) IS NOT NULL,
		coalesce(has_table_privilege(to_regclass($2)::oid, 'SELECT') AND has_table_privilege(to_regclass($2)::oid, 'INSERT') AND
			has_table_privilege(to_regclass($2)::oid, 'UPDATE') AND ($3 OR has_table_privilege(to_regclass($2)::oid, 'DELETE')), false),
		coalesce((SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = to_regclass($2)), false),
		coalesce(has_schema_privilege(to_regnamespace($1)::oid, 'CREATE'), false), coalesce(row_security_active(to_regclass($2)::oid), false)`,
		quote(to.schema), to.sql(), t.SoftDelete).Scan(&schema, &table, &rows, &owner, &create, &hidden)
	role := quote(c.Config().User)
	lacks := func(what, hint string) error {
		return t.refused("use", failure{load.ErrFailed, what, hint}, "42501", nil)
	}
	switch {
	case err != nil:
		return err
	case hidden:
		return to.misfit("make the role the owner of the table (without FORCE ROW LEVEL SECURITY), or run ALTER ROLE … BYPASSRLS", "may hide rows from the role (row level security)")
	case !schema:
		return t.refused("use", failure{load.ErrUnusable, "the schema " + to.schema + " does not exist", "run CREATE SCHEMA " + quote(to.schema) + " AUTHORIZATION " + role + ", or correct table: in the definition"}, "3F000", nil)
	case !table && !create:
		return lacks("the role is not allowed to create tables in the schema "+to.schema, "run GRANT USAGE, CREATE ON SCHEMA "+quote(to.schema)+" TO "+role)
	case table && !rows:
		return lacks("the role is not allowed to change the rows of "+to.table, "run GRANT SELECT, INSERT, UPDATE, DELETE ON "+to.sql()+" TO "+role)
	case table && changes && !owner:
		return lacks("the columns of "+to.table+" have to change, but the role does not own the table", "run ALTER TABLE "+to.sql()+" OWNER TO "+role)
	}
	return nil
}
