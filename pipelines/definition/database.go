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
	"github.com/formetl/formetl/schemas"
)

// An output may be a table of a database. It is a dataset whose address is that of the
// table, such as postgres://host/database/forms.feedback/, and whose rows change by result id.

// DatabaseKind is a kind of database that the program is built with.
type DatabaseKind struct {
	Name   string // as in a definition; also that of the format of its rows
	Schema string // of a table whose name tells none
	// Address returns the address of the database that a connection string leads to. It holds
	// no user and no password, and so does its error.
	Address func(dsn string) (string, error)
	// CheckNames finds names that the database does not take: of a table with its schema, and
	// of its columns.
	CheckNames func(table string, columns []string) error
}

// Database says how an output's table is reached.
type Database struct {
	Kind       string // name of a DatabaseKind
	DSN        ConnectionString
	Control    string // schema of formetl's own tables; "" for that of the kind
	Adopt      bool   // a table that formetl did not make may be used
	SoftDelete bool   // rows of vanished results stay, and tell in deleted_at since when
	Audit      bool   // rows tell in loaded_at and run_id of their last change
	After      string // SQL that ends each load's transaction
	// Secrets are the texts in the connection string that a reference led to.
	Secrets []transport.Secret
}

// ConnectionString is a DSN, which may hold a password. If it is formatted, logged or
// marshalled, it shows "[redacted]".
type ConnectionString struct {
	transport.Secret
	text string
}

// Reveal returns the text, for what opens connections.
func (c ConnectionString) Reveal() string { return c.text }

const dsnRemedy = "write dsn: ${env:PG}, or postgres://user:${env:PGPASSWORD}@host/database"

// readTable reads an output that is a table. The keys of files are not known here.
func (r *reader) readTable(e value, out *placedOutput, partition field) {
	db := Database{}
	out.given = e.Section(
		optional("database", nil), required("dsn", nil), required("table", nil), partition,
		optional("control_schema", intoParsed(&db.Control, parseControl, "write a schema's name, such as formetl")),
		optional("adopt", intoBoolean(&db.Adopt)),
		optional("soft_delete", intoBoolean(&db.SoftDelete)),
		optional("audit", intoBoolean(&db.Audit)),
		optional("after", intoParsed(&db.After, r.readAfter, "name a file with SQL")),
	)
	out.NoCodebook = true // nothing lies beside a table
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
		return "", errors.New("this is not the name of a schema")
	}
	return text, nil
}

// mostAfter bounds a file of SQL, in bytes.
const mostAfter = 1 << 20

// readAfter reads a file of SQL.
func (r *reader) readAfter(text string) (string, error) {
	data, err := readFile(r.local(text), mostAfter)
	if err != nil {
		return "", fmt.Errorf("the file %s cannot be read: %w", r.local(text), err)
	}
	return string(data), nil
}

// parseTable reads the name of a table, with that of its schema in front, which may be left
// out.
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
		v.Fail("write the schema's name itself, such as forms.{form}", "a placeholder stands in the name of the schema")
	case strings.ContainsAny(text, `/\`) || strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f }):
		v.Fail("choose another name", "the name of a table cannot hold a slash, a backslash or a control character here")
	default:
		return schema + "." + name, true
	}
	return "", false
}

var (
	// writtenPassword finds a password that is no reference. A reference is a \x01 there.
	writtenPassword = regexp.MustCompile(`(?i)^[a-z]+://[^/@]*:[^/@\x01]+@|password\s*=\s*'?[^\s'&\x01]`)
	// urlForm tells connection strings that are addresses from those of keywords.
	urlForm = regexp.MustCompile(`(?i)^postgres(ql)?://`)
)

// readDSN reads a connection string: a reference, or a text with references for what is
// secret. It is never shown.
func (r *reader) readDSN(v value, kind DatabaseKind, into *Database) (address string, ok bool) {
	v = v.Hidden()
	text, scalar := v.Scalar()
	switch {
	case !scalar || text == "":
		v.Fail(dsnRemedy, "the connection string is missing")
		return "", false
	case writtenPassword.MatchString(inSecret.ReplaceAllString(text, "\x01")):
		v.Fail(dsnRemedy+"; a password that has been in a file should be replaced", "a password never stands in a definition")
		return "", false
	}
	whole, unknown, failed := inSecret.FindString(text) == text, false, false
	dsn := inSecret.ReplaceAllStringFunc(text, func(found string) string {
		parts := inSecret.FindStringSubmatch(found)
		ref := reference{parts[1], parts[2]}
		value, _, err := ref.read(r.dir, r.o.Secrets)
		v.doc.Redact(transport.NewSecret(value).Redact)
		switch {
		case err != nil:
			v.Fail(ref.remedy(err, "change the reference"), "%v", err)
			failed = true
		case value == "": // a command that is not run
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
		v.Fail("correct what the reference leads to", "%v", err)
		return "", false
	}
	into.DSN = ConnectionString{transport.NewSecret(dsn), dsn}
	into.Secrets = append(into.Secrets, into.DSN.Secret)
	return address, true
}

// checkTable reports a table without a column of the result's id, by which a run finds the
// rows that it changes, and names that the database does not take.
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
	for _, c := range r.def.exploded() {
		err = cmp.Or(err, kind.CheckNames(path.Base(out.Path)+"__"+c.Name, nil))
	}
	if err != nil {
		out.at.FailWith(err, "mend the schema")
	}
	if !slices.ContainsFunc(r.def.Schema.Columns, func(c schemas.Column) bool {
		return c.From.Kind == schemas.FromResultID && c.Type.Kind == schemas.Int64 && c.PII.Kind == schemas.PIINone
	}) {
		out.at.Fail("add {name: id, from: result_id, type: int64} to the schema's columns",
			"a table needs a column with the result's id, by which a run finds the rows that it changes")
	}
}

// Secrets returns the secrets that the definition holds: the API key, and what references in
// connection strings led to.
func (d *Definition) Secrets() []transport.Secret {
	secrets := []transport.Secret{d.Source.Key}
	for _, out := range d.Outputs {
		if out.Database != nil {
			secrets = append(secrets, out.Database.Secrets...)
		}
	}
	return secrets
}
