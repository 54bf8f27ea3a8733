package schemas

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mozillazg/go-unidecode"
	"golang.org/x/text/unicode/norm"

	"github.com/formetl/formetl/schemas/plain"
)

// Naming says what the columns of items are named after where no schema names them; "" is ByID.
type Naming string

// The ways to name columns.
const (
	ByID      Naming = "id"      // item_12
	ByLabel   Naming = "label"   // the label on the form as a word that every database takes: full_name
	ByHeading Naming = "heading" // the label as it stands on the form: Full name
)

// MaxName is the most bytes that a name has that is made from an id, or by ByLabel. PostgreSQL cuts
// longer identifiers. MaxHeading is the most bytes of a name that is made by ByHeading.
const (
	MaxName    = 63
	MaxHeading = 255
)

// Snake makes a column name from a label, of at most MaxName bytes. It
// transliterates to ASCII and lower case, and turns every run of other characters
// into one "_". It drops apostrophes ("what's" is "whats"), and with them the soft
// signs of transliterated Cyrillic. A name that would begin with a digit gets a
// "_" in front, which every SQL dialect accepts. If nothing of the label is left,
// the name is "column". Equal labels give equal names: see Uniquer.
func Snake(label string) string {
	if name := snake(label); name != "" {
		return name
	}
	return "column"
}

// snake does what Snake does, but returns "" if nothing of the label is left.
func snake(label string) string {
	out := make([]byte, 0, MaxName+1)
	// The label is normalised to NFKC first, so that composed, decomposed and full-width spellings
	// of one label give one name.
	for _, c := range []byte(unidecode.Unidecode(norm.NFKC.String(label))) {
		if len(out) > MaxName {
			break
		}
		switch {
		case c >= 'A' && c <= 'Z':
			out = append(out, c+'a'-'A')
		case c >= '0' && c <= '9' && len(out) == 0:
			out = append(out, '_', c)
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			out = append(out, c)
		case c == '\'' || c == '`':
		case len(out) > 0 && out[len(out)-1] != '_':
			out = append(out, '_')
		}
	}
	return strings.TrimRight(string(out[:min(len(out), MaxName)]), "_")
}

// ItemName returns the name of an item's column if names are made from ids. It is
// "item_" and the id, where characters other than ASCII letters, digits and "_"
// become "_". A name longer than MaxName is cut and ends with a hash of the id.
func ItemName(id string) string {
	name := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, "item_"+id)
	if len(name) > MaxName {
		return hashed(name, Source{FromItem, id})
	}
	return name
}

// MetaName returns the name of a meta's column, which is its id, with "_" for what cannot be
// shown. An id longer than MaxName is cut and ends with a hash of the id.
func MetaName(id string) string {
	name := strings.Map(func(r rune) rune {
		if plain.Unsafe(r) {
			return '_'
		}
		return r
	}, id)
	if len(name) > MaxName {
		return hashed(name, Source{FromMeta, id})
	}
	return name
}

// DefaultName returns the name of a column without a schema, before it is made
// unique. The result id and metas are named by their ids, and items by ItemName, or as the naming
// says after their labels. An item keeps ItemName if nothing of its label is left, or if the name
// would be PartitionKey.
func DefaultName(from Source, label string, naming Naming) string {
	switch from.Kind {
	case FromResultID:
		return resultID
	case FromMeta:
		return MetaName(from.ID)
	}
	name := ""
	switch naming {
	case ByLabel:
		name = snake(label)
	case ByHeading:
		name = spoken(label)
	}
	if name == "" || strings.EqualFold(name, PartitionKey) {
		return ItemName(from.ID)
	}
	return name
}

// spoken returns a label on one line, of at most MaxHeading bytes.
func spoken(label string) string {
	line := strings.Map(func(r rune) rune {
		if plain.Unsafe(r) {
			return ' '
		}
		return r
	}, label)
	return strings.TrimSpace(Cut(strings.Join(strings.Fields(line), " "), MaxHeading))
}

// PartitionKey is the key in the names of a dataset's folders, such as dt=2026-01-01.
// Some readers make a column of it, which hides a column of that name in the files.
const PartitionKey = "dt"

// hashed returns name with a hash of its source at the end, cut to at most
// MaxName bytes.
func hashed(name string, from Source) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(from.String()))
	suffix := fmt.Sprintf("_h%08x", h.Sum32()) // the h keeps a hash from looking like an id
	return Cut(name, MaxName-len(suffix)) + suffix
}

// Cut returns at most the first n bytes of s. It does not split a character.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for back := range min(n+1, utf8.UTFMax) {
		if utf8.RuneStart(s[n-back]) {
			return s[:n-back]
		}
	}
	return s[:n] // not UTF-8
}

// Uniquer makes names unique in the order of the calls: the second "a" becomes
// "a_2". Names that differ only in case count as equal. The zero value is ready
// to use.
type Uniquer struct {
	taken map[string]bool
	// next is, for each wanted name, the least number to append that may be free. Smaller numbers
	// are taken for good.
	next map[string]int
}

// Taken tells whether a name is taken, in any letter case.
func (u *Uniquer) Taken(name string) bool { return u.taken[strings.ToLower(name)] }

// Name returns want if that name is free. Otherwise it appends the least number from 2 that makes
// the name new. The name then has at most MaxName bytes, or as many as want if those are more.
func (u *Uniquer) Name(want string) string {
	if u.taken == nil {
		u.taken = map[string]bool{}
	}
	if u.next == nil {
		u.next = map[string]int{}
	}
	name := want
	if u.taken[strings.ToLower(name)] {
		n := max(2, u.next[want])
		for ; u.taken[strings.ToLower(name)]; n++ {
			suffix := "_" + strconv.Itoa(n)
			name = Cut(want, max(MaxName, len(want))-len(suffix)) + suffix
		}
		u.next[want] = n
	}
	u.taken[strings.ToLower(name)] = true
	return name
}
