package definition

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/schemas"
)

// An output may be a table of a database. It counts as a dataset. Its Path is the address of the
// table, such as postgres://host/database/forms.feedback/, and a run changes rows by result id.

// DatabaseKind is a kind of database that the program is built with.
type DatabaseKind struct {
	Name   string // value of database:, such as postgres; also Output.Format of tables
	Schema string // schema of a table whose name in the definition has none, such as public
	// Address returns the address of the database that a connection string (dsn) leads to, such
	// as postgres://host/database. Neither the address nor the error holds a user or password.
	Address func(dsn string) (string, error)
	// CheckNames returns an error if the database does not take the name of a table, which has
	// its schema in front, or the names of its columns.
	CheckNames func(table string, columns []string) error
}

// Database says how an output's table is reached.
type Database struct {
	Kind       string // name of a DatabaseKind
	DSN        ConnectionString
	Control    string // schema of formetl's own tables; "" for the default of the DatabaseKind
	Adopt      bool   // a table that formetl did not make may be used
	SoftDelete bool   // rows of vanished results stay, and tell in deleted_at since when
	Audit      bool   // rows tell in loaded_at and run_id when and by which run they last changed
	After      string // SQL to run at the end of each load, in the load's transaction
	// Secrets are the texts that references in the connection string led to, and the whole
	// connection string. Logs must not show them.
	Secrets []transport.Secret
}

// ConnectionString is the DSN of a database, which may hold a password. If it is formatted,
// logged or marshalled, it shows "[redacted]".
type ConnectionString struct {
	transport.Secret
	text string
}

// Reveal returns the connection string itself, with its password, for opening a connection.
func (c ConnectionString) Reveal() string { return c.text }

const dsnRemedy = "write dsn: ${env:PG}, or postgres://user:${env:PGPASSWORD}@host/database"

// readTable reads e, an output that is a table of a database, into out. Keys of files, such as
// path, are refused as unknown.
func (r *reader) readTable(e value, out *placedOutput, partition field) {
	db := Database{}
	out.given = e.Section(
		optional("database", nil), required("dsn", nil), required("table", nil), partition,
		optional("control_schema", intoParsed(&db.Control, parseControl, "write the name of a database schema, such as formetl")),
		optional("adopt", intoBoolean(&db.Adopt)),
		optional("soft_delete", intoBoolean(&db.SoftDelete)),
		optional("audit", intoBoolean(&db.Audit)),
		optional("after", intoParsed(&db.After, r.readAfter, "write the path of a file with SQL")),
	)
	out.NoCodebook = true // no codebook file can lie beside a table
	kind, ok := pick(out.given["database"], r.o.Databases, func(k DatabaseKind) string { return k.Name })
	dsn, name := out.given["dsn"], out.given["table"]
	if !ok || !dsn.Given() || !name.Given() {
		return
	}
	out.at, out.Format, out.Database, db.Kind = name, kind.Name, &db, kind.Name
	address, known := r.readDSN(dsn, kind, &db)
	if text, named := parseTable(name, kind.Schema); known && named {
		out.Path = address + "/" + text + "/"
	}
}

func parseControl(text string) (string, error) {
	if text == "" || strings.ContainsAny(text, "{}.") {
		return "", errors.New("this is not the name of a database schema")
	}
	return text, nil
}

// mostAfter is the most bytes of the SQL file that after: names.
const mostAfter = 1 << 20

// readAfter returns the content of the SQL file that after: names.
func (r *reader) readAfter(text string) (string, error) {
	data, err := readFile(r.local(text), mostAfter)
	if err != nil {
		return "", fmt.Errorf("the file %s cannot be read: %w", r.local(text), err)
	}
	return string(data), nil
}

// parseTable reads the name of a table, with its schema in front or without, and returns
// schema.table. It returns false after a problem, which it reports.
func parseTable(v value, defaultSchema string) (string, bool) {
	text, ok := v.Text()
	if !ok || !checkBraces(v, text) {
		return "", false
	}
	schema, name, qualified := strings.Cut(text, ".")
	if !qualified {
		schema, name = defaultSchema, text
	}
	switch {
	case schema == "" || name == "":
		v.Fail("write schema.table, such as forms.feedback", "%s is not the name of a table", Quote(text))
	case strings.ContainsAny(schema, "{}"):
		v.Fail("put it into the table's name, such as forms.{form}", "the schema's name has a placeholder")
	case strings.ContainsAny(text, `/\`) || strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f }):
		v.Fail("choose another name", "a table's name cannot contain a slash, a backslash or a control character")
	default:
		return schema + "." + name, true
	}
	return "", false
}

var (
	// writtenPassword finds a password that is written into a connection string. In the text
	// that it searches, each reference is replaced by the character \x01.
	writtenPassword = regexp.MustCompile(`(?i)^[a-z]+://[^/@]*:[^/@\x01]+@|password\s*=\s*'?[^\s'&\x01]`)
	// urlForm matches connection strings that are URLs, such as postgres://host/db, and not
	// those of keywords, such as host=… dbname=….
	urlForm = regexp.MustCompile(`(?i)^postgres(ql)?://`)
)

// readDSN reads dsn, a connection string: one reference, or a text with references for what is
// secret. It returns the address of the database without user and password. Messages never show
// the connection string.
func (r *reader) readDSN(v value, kind DatabaseKind, into *Database) (address string, ok bool) {
	v = v.Hidden()
	text, scalar := v.Scalar()
	switch {
	case !scalar || text == "":
		v.Fail(dsnRemedy, "the connection string is missing")
		return "", false
	case writtenPassword.MatchString(inSecret.ReplaceAllString(text, "\x01")):
		v.Fail(dsnRemedy+"; then change the password, because others may have read it", "the connection string contains a password")
		return "", false
	}
	whole, unknown, failed := inSecret.FindString(text) == text, false, false
	dsn := inSecret.ReplaceAllStringFunc(text, func(found string) string {
		parts := inSecret.FindStringSubmatch(found)
		ref := reference{parts[1], parts[2]}
		value, _, err := ref.read(r.dir, r.o.Secrets)
		v.doc.Redact(transport.NewSecret(value).Redact)
		switch {
		case err != nil && r.secrets == nil && r.o.Command == nil: // validate warns of it
			unknown = true
		case err != nil:
			v.Fail(ref.remedy(err, "name another variable or file"), "%v", err)
			failed = true
		case value == "": // the reference is a command that is not run now, such as by validate
			unknown = true
		default:
			into.Secrets = append(into.Secrets, transport.NewSecret(value))
		}
		switch {
		case whole:
			return value
		case urlForm.MatchString(text):
			return strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
		}
		return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value) + "'"
	})
	if unknown || failed {
		return kind.Name + "://unknown", !failed
	}
	if !whole && !strings.Contains(dsn, "=") && !urlForm.MatchString(dsn) {
		v.Fail(dsnRemedy, "this is not a connection string")
		return "", false
	}
	address, err := kind.Address(dsn)
	if err != nil {
		v.Fail("correct the connection string", "%v", err)
		return "", false
	}
	into.DSN = ConnectionString{transport.NewSecret(dsn), dsn}
	into.Secrets = append(into.Secrets, into.DSN.Secret)
	return address, true
}

// checkTable reports an output that is a table whose names the database does not take, or whose
// schema has no column with the result's id, by which a run finds the rows that it changes.
func (r *reader) checkTable(out placedOutput) {
	if out.Database == nil || r.def.Schema == nil {
		return
	}
	var names []string
	for _, c := range r.def.Schema.Columns {
		names = append(names, c.Name)
	}
	if out.Database.SoftDelete {
		names = append(names, "deleted_at")
	}
	if out.Database.Audit {
		names = append(names, "loaded_at", "run_id")
	}
	kind := r.o.Databases[slices.IndexFunc(r.o.Databases, func(k DatabaseKind) bool { return k.Name == out.Database.Kind })]
	err := kind.CheckNames(path.Base(out.Path), names)
	for _, c := range r.def.children() {
		err = cmp.Or(err, kind.CheckNames(path.Base(out.Path)+"__"+c.Name, nil))
	}
	if err != nil {
		out.at.FailWith(err, "fix the schema")
	}
	if r.def.Files != nil && slices.ContainsFunc(r.def.exploded(), func(c schemas.Column) bool { return c.Name == load.FilesTable }) {
		out.at.Fail("rename the column", "the exploded column %s and the list of uploaded files would get the same table", load.FilesTable)
	}
	if !slices.ContainsFunc(r.def.Schema.Columns, func(c schemas.Column) bool {
		return c.From.Kind == schemas.FromResultID && c.Type.Kind == schemas.Int64 && c.PII.Kind == schemas.PIINone
	}) {
		out.at.Fail("add {name: id, from: result_id, type: int64} to the schema's columns",
			"a table needs a column with the result id, so that a run finds the rows to change")
	}
}

// Secrets returns what logs and messages must not show: the API key, the connection strings of
// databases, and what references in these led to.
func (d *Definition) Secrets() []transport.Secret {
	secrets := []transport.Secret{d.Source.Key}
	for _, out := range d.Outputs {
		if out.Database != nil {
			secrets = append(secrets, out.Database.Secrets...)
		}
	}
	return secrets
}
