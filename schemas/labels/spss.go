package labels

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/schemas/plain"
)

// What SPSS takes, in bytes.
const (
	maxText       = 32767 // of a string variable
	maxLabel      = 255   // of a variable's label
	maxValueLabel = 120   // of a value's label
	maxLiteral    = 100   // of a piece of a literal, for a line may have 256
)

const spssHead = `* Written by formetl schema labels, for SPSS and PSPP. Make it again after each run of formetl: widths and choices may have changed.
* Choices are numbers here, with their words as value labels; 0 is a choice that this script does not know. After another run the numbers may be others, unless the schema declares choices.
* Times are local times of the account. An empty text and no text are the same here: missing. A column whose name SPSS cannot take, such as comment, has another one here; the variables are in the order of the columns.
GET DATA
  /TYPE=TXT
  /FILE=%s
  /ENCODING='UTF8'
  /ARRANGEMENT=DELIMITED
  /DELCASE=LINE
  /FIRSTCASE=2
  /DELIMITERS=','
  /QUALIFIER='"'
  /VARIABLES=
    %s.
`

// spssBool and spssTime make the variable %[2]s of the text in the variable %[1]s.
const (
	spssBool = `RECODE %[1]s ('true' = 1) ('false' = 0) INTO %[2]s.
FORMATS %[2]s (F1.0).
VALUE LABELS %[2]s 0 'false' 1 'true'.
`
	spssTime = `IF (%[1]s <> '') %[2]s = TIME.HMS(NUMBER(SUBSTR(%[1]s, 12, 2), F2), NUMBER(SUBSTR(%[1]s, 15, 2), F2), NUMBER(SUBSTR(%[1]s, 18, 2), F2))
  + DATE.DMY(NUMBER(SUBSTR(%[1]s, 9, 2), F2), NUMBER(SUBSTR(%[1]s, 6, 2), F2), NUMBER(SUBSTR(%[1]s, 1, 4), F4)).
IF (SUBSTR(%[1]s, 20, 1) = '.') %[2]s = %[2]s + NUMBER(SUBSTR(%[1]s, 20, 7), F7).
FORMATS %[2]s (DATETIME20).
`
)

// SPSS returns the script for SPSS and PSPP. They take a line break within a value for the end
// of a row, so that they cannot read a file that is Broken.
func SPSS(f *File) string {
	var s strings.Builder
	names, read := spssNames(f.Columns), make([]string, 0, len(f.Columns))
	for i, c := range f.Columns {
		name, raw := names[i], fmt.Sprintf("@%d", i+1)                // no name of ours begins with @
		format := fmt.Sprintf("A%d", min(maxText, max(8, 2*c.width))) // twice, for a text of the next run
		switch kind := c.Type.Kind; {
		case kind == schemas.Bool:
			fmt.Fprintf(&s, spssBool, raw, name)
			format = "A5"
		case kind == schemas.Timestamp:
			fmt.Fprintf(&s, spssTime, raw, name)
			format = "A32"
		case kind == schemas.Date:
			raw, format = name, "SDATE10"
		case kind == schemas.Float64:
			raw, format = name, "F20.6"
		case kind == schemas.Decimal:
			raw, format = name, fmt.Sprintf("F40.%d", min(c.Type.Scale, 16))
		case kind == schemas.Int64 && !c.large:
			raw, format = name, "F20.0"
		case len(c.Choices) > 0:
			values, words := "", ""
			for n, choice := range c.Choices {
				values += fmt.Sprintf("\n  (%s = %d)", literal(choice), n+1)
				words += fmt.Sprintf("\n  %d %s", n+1, literal(schemas.Cut(plain.Line(choice), maxValueLabel)))
			}
			fmt.Fprintf(&s, "RECODE %s%s\n  ('' = SYSMIS) (ELSE = 0) INTO %s.\n", raw, values, name)
			fmt.Fprintf(&s, "FORMATS %[1]s (F4.0).\nVALUE LABELS %[1]s\n  0 '(not known)'%s.\nVARIABLE LEVEL %[1]s (NOMINAL).\n", name, words)
		default:
			raw = name
			fmt.Fprintf(&s, "MISSING VALUES %s ('').\n", name)
		}
		read = append(read, raw+" "+format)
		if label := cmp.Or(c.Label, plain.Line(c.Name)); label != name {
			fmt.Fprintf(&s, "VARIABLE LABELS %s\n  %s.\n", name, literal(schemas.Cut(label, maxLabel)))
		}
	}
	begin := fmt.Sprintf(spssHead, literal(plain.Line(f.Path)), strings.Join(read, "\n    "))
	return begin + s.String() + "ADD FILES /FILE=* /KEEP=\n  " + strings.Join(names, "\n  ") + ".\nEXECUTE.\n"
}

// spssNames returns names that SPSS takes: words of ASCII that begin with a letter, unique in
// any letter case. A name of the file that is such a word stays with its column, in lower case.
func spssNames(columns []Column) (names []string) {
	var unique schemas.Uniquer
	// The last three begin commands of PSPP wherever a line begins with them.
	for _, reserved := range strings.Fields("ALL AND BY EQ GE GT LE LT NE NOT OR TO WITH COMMENT DOCUMENT DOCUMENTS") {
		unique.Name(reserved)
	}
	names = make([]string, len(columns))
	for i, c := range columns {
		name := strings.ToLower(c.Name)
		if strings.ReplaceAll(name, "__", "_") == schemas.Snake(c.Name) && len(name) <= schemas.MaxName && name[0] != '_' && !unique.Taken(name) {
			names[i] = unique.Name(name)
		}
	}
	for i, c := range columns {
		if name := schemas.Snake(c.Name); names[i] == "" {
			if name[0] == '_' {
				name = "v" + name
			}
			names[i] = unique.Name(name)
		}
	}
	return names
}

// literal returns a text on one line as string literals of SPSS, in pieces that fit on a line.
func literal(text string) string {
	var pieces []string
	for pieces == nil || text != "" {
		piece := schemas.Cut(text, maxLiteral)
		pieces = append(pieces, "'"+strings.ReplaceAll(piece, "'", "''")+"'")
		text = text[len(piece):]
	}
	return strings.Join(pieces, " +\n    ")
}
