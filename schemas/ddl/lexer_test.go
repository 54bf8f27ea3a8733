package ddl_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// lexer reads SQL as a dialect documents its identifiers and literals.
type lexer struct {
	quote       byte // around identifiers
	identEscape bool // a backslash escapes in identifiers; else a doubled quote stands for one
	textEscape  bool // a backslash escapes in literals
	textDoubled bool // a doubled quote stands for one in literals
}

func lexers() map[string]lexer {
	return map[string]lexer{
		"duckdb": {quote: '"', textDoubled: true}, "postgres": {quote: '"', textDoubled: true},
		"snowflake": {quote: '"', textEscape: true, textDoubled: true}, "redshift": {quote: '"', textEscape: true, textDoubled: true},
		"bigquery": {quote: '`', identEscape: true, textEscape: true},
	}
}

// token is one of a statement: i an identifier, s a literal, w a bare word, n a
// number, p a sign.
type token struct {
	kind byte
	text string // without quotes and escapes
}

// statements divides a script into statements. Comments are left out.
func (l lexer) statements(t testing.TB, sql string) [][]token {
	t.Helper()
	var all [][]token
	var one []token
	depth := 0
	end := func() {
		if depth != 0 {
			t.Fatalf("a statement ends within brackets: %v", one)
		}
		if len(one) > 0 {
			all = append(all, one)
		}
		one = nil
	}
	for i := 0; i < len(sql); {
		switch c := sql[i]; {
		case strings.HasPrefix(sql[i:], "--"):
			i += strings.IndexByte(sql[i:], '\n')
		case c == ';':
			i++
			end()
		case c == ' ' || c == '\n':
			i++
		case c == l.quote || c == '\'':
			tok, n, err := l.quoted(sql[i:])
			if err != nil {
				t.Fatalf("%v at %.80q", err, sql[i:])
			}
			one, i = append(one, tok), i+n
		case strings.IndexByte("([{", c) >= 0:
			depth++
			one, i = append(one, token{'p', string(c)}), i+1
		case strings.IndexByte(")]}", c) >= 0:
			depth--
			one, i = append(one, token{'p', string(c)}), i+1
		default:
			n := strings.IndexFunc(sql[i:], func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
			kind := byte('w')
			if unicode.IsDigit(rune(c)) {
				kind = 'n'
			}
			if n == 0 {
				kind = 'p'
				_, n = utf8.DecodeRuneInString(sql[i:])
			}
			one, i = append(one, token{kind, sql[i : i+n]}), i+n
		}
	}
	if len(one) > 0 {
		t.Fatalf("the script ends within a statement: %v", one)
	}
	return all
}

// quoted reads an identifier or a literal.
func (l lexer) quoted(sql string) (tok token, n int, err error) {
	q := sql[0]
	tok.kind = 's'
	escape, doubled := l.textEscape, l.textDoubled
	if q == l.quote {
		tok.kind, escape, doubled = 'i', l.identEscape, !l.identEscape
	}
	var text strings.Builder
	for i := 1; i < len(sql); i++ {
		switch {
		case sql[i] == '\\' && escape && i+1 < len(sql):
			i++
			text.WriteString(map[byte]string{'n': "\n", 'r': "\r", 't': "\t"}[sql[i]])
			if strings.IndexByte("nrt", sql[i]) < 0 {
				text.WriteByte(sql[i])
			}
		case sql[i] == q && doubled && i+1 < len(sql) && sql[i+1] == q:
			i++
			text.WriteByte(q)
		case sql[i] == q:
			tok.text = text.String()
			return tok, i + 1, nil
		default:
			text.WriteByte(sql[i])
		}
	}
	return tok, 0, fmt.Errorf("%c is not closed", q)
}

// outline is a statement with T for a name (one that is divided by dots is
// one), S for a literal and N for a number.
func outline(tokens []token) string {
	var parts []string
	for i := 0; i < len(tokens); i++ {
		switch tokens[i].kind {
		case 'i':
			for i+2 < len(tokens) && tokens[i+1].text == "." && tokens[i+2].kind == 'i' {
				i += 2
			}
			parts = append(parts, "T")
		case 's':
			parts = append(parts, "S")
		case 'n':
			parts = append(parts, "N")
		default:
			parts = append(parts, tokens[i].text)
		}
	}
	return strings.Join(parts, " ")
}
