package definition

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// badDefinition is a change to the minimal definition and the one problem
// that it gives.
type badDefinition struct {
	name, old, new       string
	line                 int
	key, message, remedy string
}

// The minimal definition's lines: 1 version, 2 name, 3 source, 4 base_url,
// 5 account, 6 timezone, 7 forms, 8 load, 9 path.

func badTop() []badDefinition {
	return []badDefinition{
		{"unknown key", "forms:", "formz: [a]\nforms:", 7, "formz", "not known", "did you mean forms?"},
		{"unknown key far from all", "forms:", "colour: red\nforms:", 7, "colour", "not known", "the settings here are version, name"},
		{"key of the top", "  account", "  exclude: [a]\n  account", 5, "source.exclude", "not known", "the settings here are base_url"},
		{"key twice", "forms:", "name: q\nforms:", 7, "name", "appears twice, first on line 2", "keep one"},
		{"merge key", "forms:", "<<: {a: b}\nforms:", 7, "", "not known", "the settings here are version, name"},
		{"version missing", "version: 1\n", "", 1, "version", "required setting is missing", "add version:"},
		{"version 2", "version: 1", "version: 2", 1, "version", "version 1 only", "version: 1"},
		{"version as text", "version: 1", "version: one", 1, "version", "version 1 only", "version: 1"},
		{"name missing", "name: p\n", "", 1, "name", "required setting is missing", "add name:"},
		{"name without value", "name: p", "name:", 2, "name", "no value", "write a value"},
		{"empty name", "name: p", `name: ""`, 2, "name", "empty", "write a value"},
		{"name with a NUL", "name: p", `name: "p\0"`, 2, "name", "NUL", "remove the character"},
		{"name is a list", "name: p", "name: [p]", 2, "name", "text is expected, not a list", "one value"},
		{"name is a boolean", "name: p", "name: true", 2, "name", "not true or false", "in quotes"},
		{"name leaves its folder", "name: p", "name: ../p", 2, "name", "begins with a dot", "letters"},
		{"name with a slash", "name: p", "name: a/b", 2, "name", "slash", "letters"},
		{"tag", "name: p", "name: !!str p", 2, "name", "YAML tag", "one value"},
		{"forms missing", "forms: [form1]\n", "", 1, "forms", "required setting is missing", "add forms:"},
		{"forms is text", "[form1]", "form1", 7, "forms", "a list is expected, not text", "[a, b]"},
		{"no forms", "[form1]", "[]", 7, "forms", "the list is empty", "at least one"},
		{"form twice", "[form1]", "[form1, form1]", 7, "forms[1]", "listed twice", "keep one"},
		{"form leaves its path", "[form1]", "[form1, ../../etc]", 7, "forms[1]", "begins with a dot", "formetl forms"},
		{"form with a slash", "[form1]", "[a/b]", 7, "forms[0]", "slash", "formetl forms"},
		{"form with a backslash", "[form1]", `['..\x']`, 7, "forms[0]", "begins with a dot", "formetl forms"},
		{"form with a backslash inside", "[form1]", `['a\x']`, 7, "forms[0]", "backslash", "formetl forms"},
		{"glob that climbs", "[form1]", "['../*']", 7, "forms[0]", "has no slash", "leave out the slash"},
		{"bad glob", "[form1]", `["a[b"]`, 7, "forms[0]", "not a valid pattern", "close every ["},
		{"bad glob excluded", "forms:", "exclude: ['[']\nforms:", 7, "exclude[0]", "not a valid pattern", "close every ["},
		{"unknown key of a form", "[form1]", "[{name: form1, to: 2026-01-01}]", 7, "forms[0].to", "not known", "the settings here are name, schema, from"},
		{"form without a name", "[form1]", "[{from: -90d}]", 7, "forms[0].name", "required setting is missing", "add name:"},
		{"form of an empty name", "[form1]", "[{name: }]", 7, "forms[0].name", "no value", "write a value"},
		{"form twice, once with a schema", "[form1]", "[form1, {name: form1, from: -90d}]", 7, "forms[1].name", "listed twice", "keep one"},
		{"no date of a form", "[form1]", "[{name: form1, from: soon}]", 7, "forms[0].from", "not a valid date", "such as 2026-01-31"},
		{"schema of a form that is a list", "[form1]", "[{name: form1, schema: [a]}]", 7, "forms[0].schema", "text is expected, not a list", "one value"},
		{"schema of a form at home", "[form1]", "[{name: form1, schema: ~/s.yaml}]", 7, "forms[0].schema", "~ is not replaced here", "in full"},
		{"state elsewhere", "forms:", "state: gs://bucket/state\nforms:", 7, "state", "is not a local path", "s3://bucket/path"},
		{"state of no bucket", "forms:", "state: s3://\nforms:", 7, "state", "no valid bucket name", "s3://bucket/path"},
		{"settings of a state folder", "forms:", "state: {path: here, s3: {region: eu}}\nforms:", 7, "state.s3", "for s3:// paths", "leave s3: out"},
		{"state at home", "forms:", "state: ~/state\nforms:", 7, "state", "~ is not replaced here", "in full"},
		{"names", "forms:", "names: labels\nforms:", 7, "names", "not one of id, label, heading", "did you mean label?"},
		{"names of a table", "load:\n  - path: out.csv\n", "names: heading\nload:\n  - {database: postgres, dsn: \"${env:FORMETL_API_KEY}\", table: forms.x}\n", 8, "names", "a table takes at most 63", "write names: label"},
		{"load missing", "load:\n  - path: out.csv\n", "", 1, "load", "required setting is missing", "add load:"},
		{"load without entries", "load:\n  - path: out.csv\n", "load:\n", 8, "load", "no value", "at least one"},
		{"load is a group", "  - path", "  path", 8, "load", "a list is expected, not a group", "[a, b]"},
		{"two documents", "forms:", "---\nforms:", 8, "", "more than one YAML document", "its own file"},
		{"tab", "  base_url", "\tbase_url", 4, "", "not valid YAML: a tab,", "indentation"},
		{"no space after a colon", "version: 1", "version:1", 2, "", "on this line or the one before", "a space after"},
		{"no space in a group", "account: acme", "account:acme", 5, "", "on this line or the one before", "a space after"},
		{"quote not closed", "account: acme", `account: "acme`, 5, "", "not valid YAML", "quotes"},
		{"bracket not closed", "[form1]", "[form1", 7, "", "not valid YAML", "brackets"},
	}
}

func badSource() []badDefinition {
	url := func(name, u, message, remedy string) badDefinition {
		return badDefinition{name, "https://fs1.example.com", u, 4, "source.base_url", message, remedy}
	}
	requests := func(name, text, key, message, remedy string) badDefinition {
		return badDefinition{name, "  timezone: UTC", "  timezone: UTC\n  requests:\n    " + text, 8, "source.requests." + key, message, remedy}
	}
	return []badDefinition{
		{"source is text", "source:\n", "source: here\nx:\n", 3, "source", "group of keys is expected, not text", "indented"},
		{"base_url missing", "  base_url: https://fs1.example.com\n", "", 3, "source.base_url", "required setting is missing", "add base_url:"},
		url("other scheme", "ftp://fs1.example.com", "not a valid address of http or https", "https://HOST"),
		url("user and password", "https://me:CANARY@fs1.example.com", "a user name, a ? or a #", "https://HOST"),
		url("query", "https://fs1.example.com/?fs_api_key="+canary, "a user name, a ? or a #", "https://HOST"),
		url("the interface's path", "https://fs1.example.com/api/users/acme/forms", "formetl adds itself", "write https://fs1.example.com"),
		url("plain HTTP", "http://fs1.example.com", "unencrypted", "allow_http: true"),
		{"account missing", "  account: acme\n", "", 3, "source.account", "required setting is missing", "add account:"},
		{"account with a path", "account: acme", "account: acme/forms", 5, "source.account", "slash", "name of the account alone"},
		{"timezone missing", "  timezone: UTC\n", "", 3, "source.timezone", "required setting is missing", "add timezone:"},
		{"unknown zone", "UTC", "America/Chicagoo", 6, "source.timezone", "not a time zone", "write an IANA name"},
		{"zone as an offset", "UTC", `"+01:00"`, 6, "source.timezone", "not a time zone", "IANA name"},
		{"the machine's zone", "UTC", "Local", 6, "source.timezone", "not a time zone", "IANA name"},
		{"allow_http as text", "  account", "  allow_http: yes\n  account", 5, "source.allow_http", "true or false is expected, not text", "write true or false"},
		requests("no concurrency", "concurrency: 0", "concurrency", "not a whole number in the range", "from 1 to"),
		requests("concurrency as text", "concurrency: '4'", "concurrency", "a whole number is expected, not text", "from 1 to"),
		requests("half a retry", "retries: 1.5", "retries", "a whole number is expected, not a decimal number", "from 0 to"),
		requests("negative retries", "retries: -1", "retries", "not a whole number in the range", "from 0 to"),
		requests("no request at all", "max_requests: 0", "max_requests", "not a whole number in the range", "from 1 to"),
		requests("hexadecimal budget", "per_day: 0x10", "per_day", "not a whole number in the range", "from 0 to"),
		requests("negative budget", "per_minute: -5", "per_minute", "not a whole number in the range", "from 0 to"),
		requests("no patience", "patience: 0s", "patience", "out of range", "from 1 second to 24 hours"),
		requests("no timeout", "timeout: 0s", "timeout", "out of range", "from 1 second to 60 minutes"),
		requests("timeout without a unit", "timeout: 30", "timeout", "not a length of time", "30s"),
		requests("unknown setting", "concurency: 4", "concurency", "not known", "did you mean concurrency?"),
	}
}

func badExtract() []badDefinition {
	x := func(name, text, key, message, remedy string) badDefinition {
		return badDefinition{name, "load:", "extract:\n  " + text + "\nload:", 9, "extract." + key, message, remedy}
	}
	where := func(name, text, key, message, remedy string) badDefinition {
		return badDefinition{name, "load:", "extract:\n  search:\n    where:\n      " + text + "\nload:", 11, "extract.search.where[0]" + key, message, remedy}
	}
	return []badDefinition{
		x("month 13", "from: 2026-13-01", "from", "not a valid date", "2026-01-31"),
		x("30 February", "to: 2026-02-30", "to", "not a valid date", "2026-01-31"),
		x("25 o'clock", "from: 2026-01-01 25:00:00", "from", "not a valid date", "06:00:00"),
		x("offset", "from: 2026-01-01T06:00:00+01:00", "from", "not a valid date", "without an offset"),
		x("Z", "from: 2026-01-01T06:00:00Z", "from", "not a valid date", "without an offset"),
		x("fraction", "from: 2026-01-01 06:00:00.5", "from", "not a valid date", "without an offset"),
		x("date of another country", "from: 01.02.2026", "from", "not a valid date", "2026-01-31"),
		x("date without a value", "from:", "from", "no value", "write a value"),
		{"to before from", "load:", "extract:\n  from: 2026-02-01\n  to: 2026-01-01\nload:", 10, "extract.to", "is not after `from` (2026-02-01 00:00:00)", "the day after"},
		{"empty range", "load:", "extract:\n  from: 2026-02-01\n  to: 2026-02-01 00:00:00\nload:", 10, "extract.to", "the range is empty", "the day after"},
		x("window in weeks", "window: 1w", "window", "not a window size", "write auto"),
		x("window in months", "window: 1M", "window", "not a window size", "write auto"),
		x("window of nothing", "window: 0d", "window", "not a window size", "write auto"),
		x("window misspelt", "window: atuo", "window", "not a window size", "write auto"),
		x("window without a unit", "window: 7", "window", "not a window size", "1mo"),
		x("mode", "mode: incremantal", "mode", "not one of full, incremental", "did you mean incremental?"),
		x("lookback in weeks", "lookback: 2w", "lookback", "not a length of time", "3d"),
		x("negative lookback", "lookback: -3d", "lookback", "not a length of time", "3d"),
		x("another way to find changes", "changes: lookbak", "changes", "not one of auto, lookback", "did you mean lookback?"),
		x("changes as a list", "changes: [auto]", "changes", "text is expected, not a list", "one value"),
		x("settle too long", "settle: 99999d", "settle", "out of range", "from 0 seconds to"),
		x("verify", "verify: 1", "verify", "true or false is expected", "write true or false"),
		x("word of verify", "verify: requierd", "verify", "is not one of true, false, required", "required"),
		x("view is a list", "view: [11]", "view", "text is expected, not a list", "one value"),
		x("search without conditions", "search: {match: or}", "search.where", "required setting is missing", "add where:"),
		x("match", "search: {match: either, where: [{column: 1, empty: true}]}", "search.match", "not one of and, or", "write one of them"),
		where("condition is text", "- result_status", "", "group of keys is expected", "indented"),
		where("no column", "- {equals: Complete}", ".column", "required setting is missing", "add column:"),
		where("no operator", "- {column: 1}", "", "has one operator, and this one has 0", "several entries"),
		where("two operators", "- {column: 1, begins: a, ends: b}", "", "has one operator, and this one has 2", "several entries"),
		where("operator misspelt", "- {column: 1, equals: a, contain: b}", ".contain", "not known", "did you mean contains?"),
		where("empty: false", "- {column: 1, empty: false}", ".empty", "false has no meaning", "not_empty: true"),
		where("not_empty: yes", "- {column: 1, not_empty: yes}", ".not_empty", "true or false is expected", "write true"),
		where("no term", "- {column: 1, equals: }", ".equals", "no value", "write a value"),
		{"criteria twice", "load:", "extract:\n  search:\n    where:\n      - {column: 12, equals: a}\n      - {column: '12', equals: b}\nload:", 12, "extract.search.where[1]", "each operator only once", "another operator"},
	}
}

func badSchema() []badDefinition {
	s := func(name, text string, line int, key, message, remedy string) badDefinition {
		return badDefinition{name, "load:", text + "\nload:", line, key, message, remedy}
	}
	col := func(name, columns, key, message, remedy string) badDefinition {
		return s(name, "columns:\n  - {name: id, from: result_id, type: int64}\n  - "+columns, 10, key, message, remedy)
	}
	return []badDefinition{
		s("schema and columns", "schema: {unknown: add}\ncolumns:\n  - {name: a, from: result_id, type: int64}", 9, "columns", "schema: (line 8) and columns:", "keep one of them"),
		s("schema is a list", "schema: [a]", 8, "schema", "text is expected, not a list", "one value"),
		s("unknown rule", "schema: {unknown: drop}", 8, "schema.unknown", "not one of add, ignore, fail", "write one of"),
		s("max_rejects", "schema: {max_rejects: -1}", 8, "schema.max_rejects", "not a whole number in the range", "from 0"),
		s("empty rule", "schema: {empty: null}", 8, "schema.empty", "no value", "if it is optional"),
		s("nothing to write", "schema: {unknown: ignore}", 8, "schema", "there is nothing to write", "list columns"),
		col("no such type", "{name: a, from: 'item:1', type: integer}", "columns[1].type", `"integer"`, "int64"),
		col("no such source", "{name: a, from: items:1, type: string}", "columns[1].from", `"items:1"`, "use result_id, meta:ID, item:ID or other:ID"),
		col("names repeat", "{name: id, from: 'item:1', type: string}", "columns[1].name", `the column from result_id has the name "id" too`, "another name"),
		col("sources repeat", "{name: a, from: result_id, type: int64}", "columns[1].from", "has the source result_id already", "leave one of the two columns out"),
		col("type missing", "{name: a, from: 'item:1'}", "columns[1].type", "required setting is missing", "add type:"),
		col("pii", "{name: a, from: 'item:1', type: string, pii: hash}", "columns[1].pii", `unknown rule "hash"`, "use drop, redact"),
		col("on_error", "{name: a, from: 'item:1', type: string, on_error: ignore}", "columns[1].on_error", "not one of reject, fail, set_null", "write one of"),
		col("label is a list", "{name: a, from: 'item:1', type: string, label: [x]}", "columns[1].label", "text is expected", "in quotes"),
		col("column misspelt", "{name: a, form: 'item:1', from: 'item:1', type: string}", "columns[1].form", "not known", "did you mean from?"),
	}
}

func badLoad() []badDefinition {
	l := func(name, path string, line int, key, message, remedy string) badDefinition {
		return badDefinition{name, "out.csv", path, line, "load" + key, message, remedy}
	}
	t := func(name, output string, line int, key, message, remedy string) badDefinition {
		return badDefinition{name, "path: out.csv", output, line, "load[0]" + key, message, remedy}
	}
	f := func(name, files string, key, message, remedy string) badDefinition {
		return badDefinition{name, "load:", "files: " + files + "\nload:", 8, "files" + key, message, remedy}
	}
	return []badDefinition{
		f("files without a folder", "{}", ".path", "required setting is missing", "add path:"),
		f("files in a file", "{path: files}", ".path", "stored in a folder", "end the path with a slash"),
		f("files of one run", "{path: 'files/{run_id}/'}", ".path", "each uploaded file is fetched only once", "write a path without {run_id}"),
		f("files over an output", "{path: ./}", ".path", "overwrite each other", "give each its own path"),
		f("files of no size", "{path: files/, max_bytes: 0}", ".max_bytes", "not a size", "such as 50MB"),
		f("files of an unknown unit", "{path: files/, max_bytes: 5TB}", ".max_bytes", "not a size", "such as 50MB"),
		f("files from an address", "{path: files/, hosts: ['https://files.example.com']}", ".hosts[0]", "not the name of a host", "such as files.example.com"),
		l("a path of a table", "x\n    database: postgres\n    dsn: host=h\n    table: t", 9, "[0].path", "not known", "the settings here are database, dsn"),
		t("unknown database", "database: oracle\n    dsn: ${env:PG}\n    table: t", 9, ".database", "not one of postgres", "write one of them"),
		t("table without a dsn", "database: postgres\n    table: t", 9, ".dsn", "required setting is missing", "add dsn:"),
		t("table without a table", "database: postgres\n    dsn: ${env:PG}", 9, ".table", "required setting is missing", "add table:"),
		t("table with a format", "database: postgres\n    dsn: host=h\n    table: t\n    format: csv", 12, ".format", "not known", "the settings here are database, dsn"),
		t("a password in a dsn", "database: postgres\n    dsn: postgres://u:CANARY@h/d\n    table: t", 10, ".dsn", "contains a password", "${env:PG"),
		t("a password in keywords", "database: postgres\n    dsn: host=h password=secret\n    table: t", 10, ".dsn", "contains a password", "${env:PG"),
		t("unset variable in a dsn", "database: postgres\n    dsn: ${env:NOTHING}\n    table: t", 10, ".dsn", "the environment variable NOTHING is not set", "set it"),
		t("no connection string", "database: postgres\n    dsn: broken-CANARY\n    table: t", 10, ".dsn", "not a connection string", "${env:PG"),
		t("broken connection string", "database: postgres\n    dsn: host=broken-CANARY\n    table: t", 10, ".dsn", "no connection string", "correct"),
		t("a placeholder in a schema", "database: postgres\n    dsn: host=h\n    table: \"{form}.t\"", 11, ".table", "has a placeholder", "forms.{form}"),
		t("an empty dsn", "database: postgres\n    dsn: ''\n    table: t", 10, ".dsn", "is missing", "${env:PG"),
		t("a dotted control schema", "database: postgres\n    dsn: host=h\n    table: t\n    control_schema: a.b", 12, ".control_schema", "not the name of a database schema", "such as formetl"),
		t("a column of the audit", "database: postgres\n    dsn: host=h\n    table: t\n    audit: true\nschema: {columns: [{name: id, from: result_id, type: int64}, {name: run_id, from: \"item:1\", type: string}]}", 11, ".table", "no name here", "fix the schema"),
		t("a column of deleted rows", "database: postgres\n    dsn: host=h\n    table: t\n    soft_delete: true\nschema: {columns: [{name: id, from: result_id, type: int64}, {name: deleted_at, from: \"item:1\", type: string}]}", 11, ".table", "no name here", "fix the schema"),
		t("a list's table that the database refuses", "database: postgres\n    dsn: host=h\n    table: t\nschema: {columns: [{name: id, from: result_id, type: int64}, {name: taken, from: \"item:2\", type: list<string>, explode: true}, {name: refused, from: \"item:1\", type: list<string>, explode: true}]}", 11, ".table", "no name here", "fix the schema"),
		t("a list's table that files take", "database: postgres\n    dsn: host=h\n    table: t\nschema: {columns: [{name: id, from: result_id, type: int64}, {name: files, from: \"item:2\", type: list<string>, explode: true}]}\nfiles: {path: f/}", 11, ".table", "would get the same table", "rename the column"),
		t("a tab in a table", "database: postgres\n    dsn: host=h\n    table: \"a\\tb\"", 11, ".table", "control character", "choose another name"),
		t("a slash in a table", "database: postgres\n    dsn: host=h\n    table: a/b", 11, ".table", "cannot contain a slash", "choose another name"),
		t("an empty table", "database: postgres\n    dsn: host=h\n    table: \"a.\"", 11, ".table", "not the name of a table", "forms.feedback"),
		t("a table without the id", "database: postgres\n    dsn: host=h\n    table: t\nschema: {columns: [{name: a, from: \"item:1\", type: string}]}", 11, ".table", "the result id", "from: result_id"),
		t("an id as text", "database: postgres\n    dsn: host=h\n    table: t\nschema: {columns: [{name: id, from: result_id, type: string}]}", 11, ".table", "the result id", "int64"),
		l("a table's key at a file", "out.csv\n    table: t", 10, "[0].table", "not known", "the settings here are path, database"),
		l("no extension", "out", 9, "[0].path", "does not tell its format", "format:"),
		l("unknown extension", "out.xls", 9, "[0].path", "does not tell its format", "slash for a dataset"),
		l("unknown format", "out.csv\n    format: cvs", 10, "[0].format", "not one of csv, ndjson", "did you mean csv?"),
		l("format and extension differ", "out.csv\n    format: parquet", 10, "[0].format", "the path ends with .csv, but the format is parquet", "format: csv"),
		l("format and inner extension differ", "out.ndjson.gz\n    format: csv", 10, "[0].format", "the path ends with .ndjson", "format: ndjson"),
		l("parquet in gzip", "out.parquet.gz", 9, "[0].path", "is inside it", "compression:"),
		l("dataset without a format", "out/", 9, "[0].path", "needs a format", "format: parquet"),
		l("dataset of json", "out/\n    format: json", 10, "[0].format", "single files only", "use ndjson"),
		l("dataset of xlsx", "out/\n    format: xlsx", 10, "[0].format", "single files only", "use ndjson"),
		l("xlsx in zstd", "out.xlsx\n    compression: zstd", 10, "[0].compression", "not one of none", "write one of"),
		l("partition over a column dt", "out/\n    format: csv\n    partition: day\nschema: {columns: [{name: DT, from: result_id, type: int64}]}", 11, "[0].partition", "the schema has a column dt", "rename the column"),
		l("partition of a file", "out.csv\n    partition: day", 10, "[0].partition", "cannot be partitioned", "end the path with a slash"),
		l("unknown partition", "out/\n    format: csv\n    partition: daily", 11, "[0].partition", "not one of none, day", "did you mean day?"),
		l("unknown compression", "out/\n    format: csv\n    compression: snappy", 11, "[0].compression", "not one of none, gzip, zstd", "write one of"),
		l("arrow in snappy", "out.arrow\n    compression: snappy", 10, "[0].compression", "not one of none, zstd", "write one of"),
		l("compression against the name", "out.csv\n    compression: gzip", 10, "[0].compression", "is none, but this setting says gzip", ".csv.gz"),
		l("no compression against the name", "out.csv.gz\n    compression: none", 10, "[0].compression", "is gzip, but this setting says none", ".csv,"),
		l("csv settings of parquet", "out.parquet\n    csv: {profile: excel}", 10, "[0].csv", "for the format csv, not parquet", "leave csv: out"),
		l("csv profile", "out.csv\n    csv: {profile: exel}", 10, "[0].csv.profile", "not one of strict, excel", "did you mean excel?"),
		l("csv delimiter", "out.csv\n    csv: {delimiter: tab}", 10, "[0].csv.delimiter", "not known", "the settings here are profile"),
		l("unknown placeholder", "out/{froms}.csv", 9, "[0].path", "is not a placeholder", "did you mean {form}?"),
		l("unset variable in a path", `"${env:HOME}/out.csv"`, 9, "[0].path", "the environment variable HOME is not set", "a default under vars:"),
		l("brace without a partner", "'out/{form.csv'", 9, "[0].path", "a { without a }", "{form}"),
		l("home folder", "~/out.csv", 9, "[0].path", "~ is not replaced here", "in full"),
		l("a folder as a file", "../..", 9, "[0].path", "is a folder", "end the path with a slash"),
		l("file scheme", "file:///tmp/out.csv", 9, "[0].path", "cannot write to file://", "write a local path"),
		l("unknown scheme", "gs://bucket/out.csv", 9, "[0].path", "cannot write to gs://", "s3://"),
		l("no bucket", "s3:///out.csv", 9, "[0].path", "no valid bucket name", "s3://bucket/path"),
		l("bucket alone", "s3://bucket/", 9, "[0].path", "nothing after the bucket", "folder/"),
		l("remote path that climbs", "s3://bucket/a/../out.csv", 9, "[0].path", "second slash in a row", "without"),
		l("s3 settings of a local path", "out.csv\n    s3: {region: x}", 10, "[0].s3", "for s3:// paths", "leave s3: out"),
		l("s3 endpoint with a password", "s3://b/out.csv\n    s3: {endpoint: 'http://a:CANARY@host'}", 10, "[0].s3.endpoint", "not the address of an S3 server", "come from the environment"),
		l("s3 endpoint with a query", "s3://b/out.csv\n    s3: {endpoint: 'https://host/?x=1'}", 10, "[0].s3.endpoint", "not the address of an S3 server", "https://"),
		l("s3 endpoint with a fragment", "s3://b/out.csv\n    s3: {endpoint: 'https://host/#x'}", 10, "[0].s3.endpoint", "not the address of an S3 server", "https://"),
		l("encryption", "s3://b/out.csv\n    s3: {sse: customer}", 10, "[0].s3.sse", "not one of s3, kms", "write one of"),
		l("key without KMS", "s3://b/out.csv\n    s3: {sse: s3, kms_key_id: k}", 10, "[0].s3.kms_key_id", "sse: kms only", "add sse: kms"),
		l("key without encryption", "s3://b/out.csv\n    s3: {kms_key_id: k}", 10, "[0].s3.kms_key_id", "sse: kms only", "leave kms_key_id out"),
		l("part size without a unit that is known", "s3://b/out.csv\n    s3: {part_size: 8MB}", 10, "[0].s3.part_size", "not a size from 5MiB to 5120MiB", "16MiB"),
		l("part size too small", "s3://b/out.csv\n    s3: {part_size: 4MiB}", 10, "[0].s3.part_size", "not a size from 5MiB to 5120MiB", "such as 16MiB"),
		l("part size too large", "s3://b/out.csv\n    s3: {part_size: 5121MiB}", 10, "[0].s3.part_size", "not a size from 5MiB to 5120MiB", "such as 16MiB"),
		l("part size beyond all numbers", "s3://b/out.csv\n    s3: {part_size: 99999999999999999999MiB}", 10, "[0].s3.part_size", "not a size from 5MiB to 5120MiB", "such as 16MiB"),
		l("no parts in flight", "s3://b/out.csv\n    s3: {parts_in_flight: 0}", 10, "[0].s3.parts_in_flight", "not a whole number in the range", "from 1 to 256"),
		l("one path twice", "out.csv\n  - path: ./out.csv", 10, "[1].path", "this output and load[0].path on line 9 would overwrite each other", "its own path"),
		l("one path twice, and so the children's", "out.csv\n  - path: out.csv\nschema: {columns: [{name: a, from: result_id, type: int64}, {name: b, from: \"item:2\", type: list<string>, explode: true}]}", 10, "[1].path", "this output and load[0].path on line 9 would overwrite each other", "its own path"),
		l("one path twice by a form's name", "'{form}.csv'\n  - path: form1.csv", 10, "[1].path", "would overwrite each other", "its own path"),
		l("file in a dataset", "lake/\n    format: csv\n  - path: lake/x.csv", 11, "[1].path", "would overwrite each other", "neither inside the other"),
		l("dataset around a file", "lake/a/x.csv\n  - path: lake/\n    format: csv", 10, "[1].path", "would overwrite each other", "neither inside the other"),
		l("no path", "out.csv\n  - format: csv", 10, "[1].path", "required setting is missing", "add path:"),
		{"several forms, one path", "[form1]", "[form1, form2]", 9, "load[0].path", "several forms would be written to this one place", "{form}"},
		{"a glob, one path", "[form1]", "['*']", 9, "load[0].path", "several forms would be written to this one place", "{form}"},
		{"a glob, one path of two", "[form1]\nload:\n", "['*']\nload:\n  - path: '{form}.csv'\n", 10, "load[1].path", "several forms would be written to this one place", "{form}"},
		{"second child's path is taken", "load:\n  - path: out.csv", strings.Replace(exploded("c"), "load:", "  - {name: d, from: 'item:2', type: list<string>, explode: true}\nload:", 1) + "  - path: out__d.csv", 13, "load[0].path", "explode: true also writes the values of the list item:2", "its own path"},
		{"child's path is taken", "load:\n  - path: out.csv", exploded("c") + "  - path: out__c.csv", 12, "load[0].path", "explode: true also writes the values of the list item:1", "its own path"},
		{"a list's table is taken", "load:\n  - path: out.csv", strings.Replace(exploded("c"), "- path: out.csv", "- {database: postgres, dsn: host=h, table: t}\n  - {database: postgres, dsn: host=h, table: t__c}", 1), 13, "load[1].table", "would overwrite each other", "its own path"},
		{"child of no name for a path", "load:\n  - path: out.csv", exploded("a/b"), 12, "load[0].path", "contains a slash", "rename the column"},
		{"child of a placeholder", "load:\n  - path: out.csv", exploded("'{form}'"), 12, "load[0].path", "contains a brace", "rename the column"},
		{"incremental file", "load:", "extract: {mode: incremental}\nload:", 10, "load[0].path", "this path is a single file", "mode: full"},
	}
}

// exploded is a schema whose list has outputs of its own, and the beginning of load.
func exploded(name string) string {
	return "columns:\n  - {name: id, from: result_id, type: int64}\n  - {name: " + name + ", from: 'item:1', type: list<string>, explode: true}\nload:\n  - path: out.csv\n"
}

func TestBadDefinitions(t *testing.T) {
	cases := append(append(append(append(badTop(), badSource()...), badExtract()...), badSchema()...), badLoad()...)
	if len(cases) < 100 {
		t.Errorf("only %d cases", len(cases))
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(minimal, c.old, c.new, 1)
			if c.name == "source is text" {
				text = "version: 1\nname: p\nsource: here\nforms: [form1]\nload: [{path: out.csv}]\n"
			}
			_, err := Parse(filepath.Join(t.TempDir(), "p.yaml"), []byte(text), testOptions())
			var wrong *Error
			if !errors.As(err, &wrong) {
				t.Fatalf("got %v", err)
			}
			if len(wrong.Problems) != 1 {
				t.Fatalf("%d problems:\n%v", len(wrong.Problems), err)
			}
			p := wrong.Problems[0]
			if p.Line != c.line || p.Key != c.key || !strings.Contains(p.Message, c.message) || !strings.Contains(p.Remedy, c.remedy) || p.Column < 1 {
				t.Errorf("got  %d %s | %s | %s\nwant %d %s | %s | %s", p.Line, p.Key, p.Message, p.Remedy, c.line, c.key, c.message, c.remedy)
			}
			if shown := wrong.Error(); strings.Contains(shown, canary) || strings.Contains(shown, "CANARY") {
				t.Errorf("the error shows the key: %s", wrong.Error())
			}
		})
	}
}

func TestAllProblemsAtOnce(t *testing.T) {
	text := "nme: p\nversion: 3\nsource:\n  base_url: nowhere\n  timezone: Mars\nforms: [a, a]\nload:\n  - path: x.doc\n"
	_, err := Parse("dir/p.yaml", []byte(text), testOptions())
	want := []string{
		"dir/p.yaml:1:1: nme: the setting is not known; did you mean name?",
		"dir/p.yaml:1:1: name: the required setting is missing; add name:",
		"dir/p.yaml:2:10: version: formetl knows version 1 only; write version: 1",
		"dir/p.yaml:3:1: source.account: the required setting is missing; add account:",
		"dir/p.yaml:4:13: source.base_url: the base URL is not a valid address of http or https; ",
		"dir/p.yaml:5:13: source.timezone: \"Mars\" is not a time zone that this machine knows; ",
		"dir/p.yaml:6:12: forms[1]: the form \"a\" is listed twice; keep one of them",
		"dir/p.yaml:8:11: load[0].path: the file's extension does not tell its format; ",
	}
	if err == nil {
		t.Fatal("no error")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d lines, want %d:\n%v", len(lines), len(want), err)
	}
	for i, w := range want {
		if !strings.HasPrefix(lines[i], w) {
			t.Errorf("line %d\ngot  %s\nwant %s", i, lines[i], w)
		}
	}
	var wrong *Error
	if !errors.As(err, &wrong) || strings.Contains(wrong.Error(), "nowhere") {
		t.Errorf("an address is shown:\n%s", wrong.Error())
	}
}

func TestNotADefinition(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"nothing":           {"", "p.yaml:1:1: the file is empty"},
		"only comments":     {"# nothing\n\n", "p.yaml:1:1: the file is empty"},
		"text":              {"hello", "a group of keys is expected, not text"},
		"list":              {"- a\n", "a group of keys is expected, not a list"},
		"deep brackets":     {strings.Repeat("[", 100_000), "not valid YAML"},
		"deep braces":       {strings.Repeat("{a: ", 100_000), "not valid YAML"},
		"deep sequences":    {strings.Repeat("- ", 100_000), "not valid YAML"},
		"deep keys":         {strings.Repeat("? ", 100_000), "not valid YAML"},
		"deep anchors":      {strings.Repeat("&a ", 100_000), "not valid YAML"},
		"alias of itself":   {"version: &v *v\n", "not valid YAML"},
		"alias of nothing":  {"version: *nothing\n", "no anchor (&name) in this file"},
		"binary":            {"\x00\x01\x02", "p.yaml:1:1: "},
		"a directive alone": {"%YAML 1.2\n---\n", "p.yaml:"},
	} {
		_, err := Parse("p.yaml", []byte(c.text), testOptions())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			text := err.Error()
			t.Errorf("%s: got %.300s", name, text)
		}
	}
}
