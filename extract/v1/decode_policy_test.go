package v1

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract/transport"
)

// emptyAnswer is the shortest success.
const emptyAnswer = `<fs_response status="success"><results/></fs_response>`

// manyAttributes returns one attribute more than the bound.
func manyAttributes() string {
	var b strings.Builder
	for i := range maxAttributes + 1 {
		b.WriteString(" a" + strings.Repeat("x", i) + "='1'")
	}
	return b.String()
}

// policyDifferences are documents that encoding/xml accepts and the decoder
// refuses, each with the reason.
var policyDifferences = []struct{ name, why, body, want string }{
	{
		"duplicate attribute", "not well-formed; which of two ids counts must not be guessed",
		inResponse(`<results><result id="1" id="2"/></results>`), "a duplicate attribute",
	},
	{
		"attributes without a space", "not well-formed",
		`<fs_response status="success"x="1"><results/></fs_response>`, "a tag in which no space stands before an attribute, or a bad name",
	},
	{
		"many attributes", "the check for duplicates must not take quadratic time",
		inResponse("<x" + manyAttributes() + "/><results/>"), "a tag with more attributes than the bound",
	},
	{
		"deep nesting", "a bound on hostile input",
		inResponse(strings.Repeat("<x>", 64) + strings.Repeat("</x>", 64) + "<results/>"), "elements are nested deeper than the bound",
	},
	{
		"two documents", "two answers glued together: encoding/xml reads streams, an answer is one document",
		emptyAnswer + emptyAnswer, "a second root element",
	},
	{
		"text before", "a program's warning printed before the answer",
		"<!-- --> Warning: x" + emptyAnswer, "text before the root element",
	},
	{
		"text after", "a program's warning printed after the answer",
		emptyAnswer + "Warning: x", "text after the root element",
	},
	{
		"CDATA outside", "not well-formed",
		emptyAnswer + "<![CDATA[]]>", "a CDATA section outside the root element",
	},
	{
		"internal subset", "it could define entities, which encoding/xml skips without reading",
		`<!DOCTYPE a [<!ENTITY b "c">]>` + emptyAnswer, "a DOCTYPE with an internal subset",
	},
	{
		"late DOCTYPE", "not well-formed",
		emptyAnswer + "<!DOCTYPE a>", "a DOCTYPE that does not stand alone before the root element",
	},
	{
		"two DOCTYPEs", "not well-formed",
		"<!DOCTYPE a><!DOCTYPE a>" + emptyAnswer, "a DOCTYPE that does not stand alone before the root element",
	},
	{
		"other declarations", "not well-formed outside an internal subset",
		`<!ENTITY a "b">` + emptyAnswer, "a <! that begins neither a comment nor a CDATA section nor a DOCTYPE",
	},
	{
		"late XML declaration", "not well-formed; a sign of answers glued together",
		"<!-- --><?xml version='1.0'?>" + emptyAnswer, "an XML declaration that does not begin the document",
	},
	{
		"malformed XML declaration", "its encoding cannot be known; encoding/xml searches it for encoding=",
		"<?xml version='1.0' x='y'?>" + emptyAnswer, "a malformed XML declaration",
	},
}

// TestPolicyRefusals has a case for every entry of policyRefusals.
func TestPolicyRefusals(t *testing.T) {
	for _, problem := range policyRefusals {
		if !slices.ContainsFunc(policyDifferences, func(c struct{ name, why, body, want string }) bool { return c.want == problem }) {
			t.Errorf("no case says why %q is refused", problem)
		}
	}
	for _, c := range policyDifferences {
		t.Run(c.name, func(t *testing.T) {
			if _, err := oracleTree([]byte(c.body)); err != nil {
				t.Fatalf("encoding/xml refuses it too (%v): this is no difference in policy", err)
			}
			_, err := DecodePage([]byte(c.body), "")
			var answer *transport.AnswerError
			if !errors.As(err, &answer) || answer.Problem != c.want {
				t.Errorf("err = %v, want %q: %s", err, c.want, c.why)
			}
			if !slices.Contains(policyRefusals, c.want) {
				t.Errorf("%q is not in policyRefusals", c.want)
			}
		})
	}
}

// TestPolicyAcceptances holds documents that encoding/xml refuses and the
// decoder reads, each with the reason.
func TestPolicyAcceptances(t *testing.T) {
	const fffd = "\ufffd"
	for _, c := range []struct {
		name, why, body, want string
		replaced              int
	}{
		{"raw control character", "answers hold what people paste; one character must not fail a run", oneValue("a\vb"), "a" + fffd + "b", 1},
		{"raw NUL", "as above", oneValue("\x00"), fffd, 1},
		{"control character by number", "as above", oneValue("a&#11;&#x1F;b"), "a" + fffd + fffd + "b", 2},
		{"NUL by number", "as above", oneValue("&#0;"), fffd, 1},
		{"beyond Unicode", "as above", oneValue("&#x110000;&#99999999999999999999;"), fffd + fffd, 2},
		{"noncharacters", "U+FFFE and U+FFFF are forbidden by XML 1.0", oneValue("\ufffe\uffff&#xFFFE;&#65535;"), strings.Repeat(fffd, 4), 4},
		{"invalid UTF-8", "each byte by itself", oneValue("a\xff\xc3b\xe2\x82"), "a" + fffd + fffd + "b" + fffd + fffd, 4},
		{"surrogates in UTF-8", "each byte by itself", oneValue("\xed\xa0\xbd\xed\xb8\x80"), strings.Repeat(fffd, 6), 6},
		{"overlong NUL", "as above", oneValue("\xc0\x80"), fffd + fffd, 2},
		{"XML 1.1", "the version is not looked at", "<?xml version='1.1'?>" + oneValue("x"), "x", 0},
		{"another charset", "see TestCharsets", "<?xml version='1.0' encoding='latin1'?>" + oneValue("\xe9"), "\u00e9", 0},
		{"newer names", "the fifth edition of XML 1.0 allows names that encoding/xml's fourth does not", inResponse("<\U00010000/>" + oneResult("x")), "x", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := oracleTree([]byte(c.body)); err == nil {
				t.Fatal("encoding/xml reads it too: this is no difference in policy")
			}
			p, err := DecodePage([]byte(c.body), "")
			if err != nil {
				t.Fatalf("%v: %s", err, c.why)
			}
			defer p.Release()
			if got := string(p.Value(p.Cells(0)[0], 0)); got != c.want || p.Replaced != c.replaced {
				t.Errorf("%q with %d replaced, want %q with %d: %s", got, p.Replaced, c.want, c.replaced, c.why)
			}
		})
	}
}

func oneResult(value string) string {
	return `<results><result id="1"><metas><meta id="m">` + value + `</meta></metas></result></results>`
}

// TestPolicyReplacedAnywhere: encoding/xml does not look at the characters of
// comments; the decoder counts what it replaces wherever it stands.
func TestPolicyReplacedAnywhere(t *testing.T) {
	p := mustDecode(t, inResponse("<!-- \v -->"+oneResult("x")))
	defer p.Release()
	if p.Replaced != 1 {
		t.Errorf("%d replaced", p.Replaced)
	}
}

// TestPolicySurrogateReference: both replace a surrogate that is written as a
// reference; the decoder also counts it.
func TestPolicySurrogateReference(t *testing.T) {
	p := mustDecode(t, oneValue("&#xD83D;&#xDE00;"))
	defer p.Release()
	if got := string(p.Value(p.Cells(0)[0], 0)); got != "\ufffd\ufffd" || p.Replaced != 2 {
		t.Errorf("%q with %d replaced", got, p.Replaced)
	}
}

// TestPolicyDeclaredWithBlanks: encoding/xml overlooks an encoding with blanks
// around its =, which XML allows.
func TestPolicyDeclaredWithBlanks(t *testing.T) {
	p := mustDecode(t, "<?xml version = '1.0' encoding = 'ISO-8859-1' ?>"+oneValue("\xe9"))
	defer p.Release()
	if got := string(p.Value(p.Cells(0)[0], 0)); got != "\u00e9" {
		t.Errorf("read %q", got)
	}
}

// TestPolicyPrefixes: names are compared as they are written. encoding/xml
// resolves prefixes and compares local names; the service has no prefixes.
func TestPolicyPrefixes(t *testing.T) {
	p := mustDecode(t, inResult(`<items xmlns:x=""><item x:id="2" id="1"><x:value>a</x:value><value>b</value></item></items>`))
	defer p.Release()
	if c := p.Cells(0); len(c) != 1 || c[0].Values != 1 || string(p.Value(c[0], 0)) != "b" || p.Fields[0].ID != "1" {
		t.Errorf("cells %+v, fields %+v", c, p.Fields)
	}
}
