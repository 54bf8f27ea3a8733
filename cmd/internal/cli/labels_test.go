package cli

import (
	"encoding/csv"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load/loadtest/needs"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/schemas/plain"
)

// hostileColumns are columns of every type, over a form whose words try to break out of scripts.
const hostileColumns = `
  - {name: id, from: result_id, type: int64}
  - {name: "to", from: "item:1", type: string}
  - {name: "Größe; it's\n#", from: "item:2", type: string}
  - {name: sizes, from: "item:3", type: list<string>, list_as: columns}
  - {name: joined, from: "item:4", type: list<string>}
  - {name: far, from: "item:5", type: int64}
  - {name: price, from: "item:6", type: "decimal(12,2)"}
  - {name: born, from: "item:7", type: date}
  - {name: ok, from: "item:8", type: bool}
  - {name: share, from: "item:9", type: float64}
  - {name: when, from: "meta:date_finish", type: timestamp}
`

func hostileLabels() *formservice.Form {
	items := []formservice.Item{
		{ID: "1", Type: "text", Index: 1, Label: "It's \"so\".\nHOST COMMAND=['ls']."},
		{ID: "2", Type: "radio", Index: 2, Label: `back\slash " ' ); q(); # ` + strings.Repeat("é", 200)},
		{ID: "3", Type: "checkbox", Index: 3, Label: "Sizes"},
		{ID: "4", Type: "checkbox", Index: 4, Label: "'"},
		{ID: "5", Type: "number", Index: 5, Label: "* a comment. /*"},
		{ID: "6", Type: "number", Index: 6, Label: "%s %d"},
		{ID: "7", Type: "date", Index: 7, Label: "日本\u202e"},
		{ID: "8", Type: "radio", Index: 8, Label: ""},
		{ID: "9", Type: "number", Index: 9, Label: "end."},
	}
	results := make([]formservice.Result, 5)
	for i, row := range [][]string{
		{"plain", "it's", "S|\\.", "a|b", "9007199254740993", "12.50", "2026-01-02", "true", "0.1"},
		{"a, \"b\"\nc", `say "x"\t`, ".", "it's|x", "-3", "-0.01", "1999-12-31", "false", "1e-300"},
		{" =1+1 ", "=日本", "S", "c", "0", "99999999.99", "1600-02-29", "true", "-1.5e300"},
		{"", "", "", "", "", "", "", "", ""},
		{strings.Repeat("ä", 2000), strings.Repeat("ö", 90), "\\.", "é", "7", "1.00", "2028-02-29", "false", "3"},
	} {
		r := formservice.Result{ID: int64(10 + i), Metas: []formservice.Meta{{ID: "date_finish", Value: fmt.Sprintf("2026-%02d-15 23:59:5%d", 2+4*(i%2), i)}}}
		for k, text := range row {
			if values := strings.Split(text, "|"); text != "" || k == 0 {
				r.Items = append(r.Items, formservice.Answer{ID: items[k].ID, Values: values})
			}
		}
		results[i] = r
	}
	return formservice.NewForm("form1", items, results)
}

// TestStatisticsProgramsReadLabels: PSPP and R read what formetl wrote, with its types and labels.
func TestStatisticsProgramsReadLabels(t *testing.T) {
	needs.Slow(t)
	pspp := needs.Program(t, "pspp", "apt-get install --no-install-recommends pspp")
	rscript := needs.Program(t, "Rscript", "apt-get install --no-install-recommends r-base-core")
	form := hostileLabels()
	_, server := newService(testKey, form)
	defer server.Close()
	for _, profile := range []string{"strict", "excel"} {
		t.Run(profile, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "it's \"é\" \\d")
			file := write(t, dir, "labels.yaml", fmt.Sprintf(`version: 1
name: labels
source: {base_url: %q, account: acme, timezone: America/Chicago}
forms: [form1]
schema:
  columns:%s
load: [{path: "{form}.csv", csv: {profile: %s}}]
`, server.URL, strings.ReplaceAll(hostileColumns, "\n", "\n  "), profile))
			// back runs a script of the command with more behind it, and returns the CSV file that it leaves.
			back := func(more string, program []string, args ...string) [][]string {
				t.Helper()
				code, script, stderr := inProcess(testKey, append([]string{"schema", "labels", file}, args...)...)
				if code != 0 {
					t.Fatalf("%v ended with %d: %s", args, code, stderr)
				}
				cmd := exec.CommandContext(t.Context(), program[0], append(program[1:], write(t, dir, "script", script+more))...)
				cmd.Dir, cmd.Env = dir, append(os.Environ(), "LC_ALL=C.UTF-8")
				if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(strings.ToLower(string(out)), "warning") {
					t.Fatalf("%v: %v\n%s\nof\n%s", program, err, out, script)
				}
				return readCSV(t, filepath.Join(dir, "back.csv"))
			}
			if code, _, stderr := inProcess(testKey, "run", file); code != 0 {
				t.Fatal(stderr)
			}
			wrote := readCSV(t, filepath.Join(dir, "form1.csv"))
			inSPSS := back("DISPLAY DICTIONARY.\nSAVE TRANSLATE /OUTFILE='back.csv' /TYPE=CSV /FIELDNAMES /CELLS=LABELS.\n",
				[]string{pspp, "-o", "dictionary.csv", "-O", "format=csv"}, "--for", "spss", "--flat", filepath.Join(dir, "flat.csv"))
			inR := back(`
x <- results
x[] <- lapply(x, function(v) if (inherits(v, "POSIXct")) format(v, "%Y-%m-%d %H:%M:%S") else as.character(v))
said <- function(what) vapply(results, what, "")
x <- rbind(said(function(v) class(v)[1]), said(function(v) paste(attr(v, "label"), collapse = "")), said(function(v) paste(levels(v), collapse = "|")), x)
write.csv(x, "back.csv", na = "", row.names = FALSE)
`, []string{rscript, "--vanilla"}, "--for", "r")

			dictionary, err := os.ReadFile(filepath.Join(dir, "dictionary.csv"))
			if err != nil {
				t.Fatal(err)
			}
			types := strings.Fields("numeric character factor logical logical logical character character numeric Date logical numeric POSIXct")
			formats := strings.Fields("F20.0 A8000 F4.0 F1.0 F1.0 F1.0 A12 A32 F40.2 SDATE10 F1.0 F21.6 DATETIME20.0")
			label := []string{
				"", "It's \"so\". HOST COMMAND=['ls'].", plain.Line(form.Items[1].Label), "Sizes: .", "Sizes: S", `Sizes: \.`, "'",
				"* a comment. /*", "%s %d", "日本", "", "end.", "",
			}
			for c, name := range wrote[0] {
				if inR[0][c] != name || inR[1][c] != types[c] || inR[2][c] != label[c] {
					t.Errorf("R has the column %q as %q", name, inR[:3][c])
				}
				// PSPP writes a table of its variables, with the fields name, place, label, level, role, width, side and format.
				field := schemas.Cut(label[c], 255)
				if strings.ContainsAny(field, `",`) {
					field = `"` + strings.ReplaceAll(field, `"`, `""`) + `"`
				}
				if line := fmt.Sprintf("\n%s,%d,%s,", inSPSS[0][c], c+1, field); !strings.Contains(string(dictionary), line) {
					t.Errorf("PSPP has no line %q:\n%s", line, dictionary)
				}
				if !regexp.MustCompile(`(?m)^` + inSPSS[0][c] + `,.*,` + formats[c] + `,`).Match(dictionary) {
					t.Errorf("PSPP has the column %q not as %s:\n%s", inSPSS[0][c], formats[c], dictionary)
				}
				for row := 1; row < len(wrote); row++ {
					text := wrote[row][c]
					if got := inR[row+3][c]; !sameValue(text, got) {
						t.Errorf("%s: R reads %q as %q", name, text, got)
					}
					if got := inSPSS[row][c]; !sameValue(strings.TrimRight(strings.ReplaceAll(text, "\n", " "), " "), strings.TrimRight(got, " ")) && !strings.HasPrefix(text, "ööö") {
						t.Errorf("%s: PSPP reads %q as %q", name, text, got)
					}
				}
			}
			choices := slices.Sorted(slices.Values([]string{wrote[1][2], wrote[2][2], wrote[3][2], wrote[5][2]}))
			if got := strings.Split(inR[3][2], "|"); !slices.Equal(slices.Sorted(slices.Values(got)), choices) {
				t.Errorf("R has the levels %q", got)
			}
		})
	}
}

func readCSV(t *testing.T, file string) [][]string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(string(data), "\uFEFF"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// sameValue tells whether a program wrote a field of a CSV file of formetl in its own way.
func sameValue(wrote, got string) bool {
	for _, form := range []string{"2006-01-02T15:04:05-07:00", time.DateTime, time.DateOnly} {
		if at, err := time.Parse(form, wrote); err == nil {
			return got == at.Format(time.DateTime) || got == at.Format("01/02/2006 15:04:05") || form == time.DateOnly && (got == wrote || got == at.Format("01/02/2006"))
		}
	}
	if a, err := strconv.ParseFloat(wrote, 64); err == nil {
		b, err := strconv.ParseFloat(got, 64)
		return err == nil && a == b && (len(wrote) < 16 || wrote == got)
	}
	return wrote == got || (wrote == "true" || wrote == "false") && strings.ToLower(got) == wrote
}
