package cli

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/pipelines/definition"
)

const (
	// hmacCanary is a key of pii: hmac whose spellings all differ.
	hmacCanary = `hm+ c k/e%y&=ö"<of more than 16`
	// privateWord is in every personal value, behind its first two characters. It cannot occur by
	// chance.
	privateWord = "Qx7Zk9PRIV4vWm"
)

// privateForm holds personal data in every field but a few: strings, lists, several values for one
// string, numbers, metas. The card of every hundredth result is two, so that it is rejected.
func privateForm() *formservice.Form {
	items := []formservice.Item{
		{ID: "1", Type: "email", Index: 1, Label: "Mail"},
		{ID: "2", Type: "radio", Index: 2, Label: "Phone"},
		{ID: "3", Type: "text", Index: 3, Label: "Name"},
		{ID: "4", Type: "checkbox", Index: 4, Label: "Friends"},
		{ID: "5", Type: "checkbox", Index: 5, Label: "Tags"},
		{ID: "6", Type: "text", Index: 6, Label: "Note"},
		{ID: "7", Type: "text", Index: 7, Label: "Card"},
		{ID: "8", Type: "number", Index: 8, Label: "Amount"},
	}
	results := make([]formservice.Result, 0, 250)
	for i := range 250 {
		value := func(what string) string { return fmt.Sprintf("ab%s-%s-%d é\"<&>|\\\n,;x", privateWord, what, i%7) }
		r := formservice.Result{ID: int64(1000 + i), Metas: []formservice.Meta{
			{ID: "date_finish", Value: time.Date(2026, 1, 1, i/6, i%60, 0, 0, time.UTC).Format(formservice.WallTime)}, {ID: "user_ip", Value: value("ip")},
		}}
		for _, it := range items {
			values := []string{value(it.Label)}
			switch {
			case it.ID == "8" && i%100 == 33:
				values[0] = "none" // rejected
			case it.ID == "8":
				values[0] = fmt.Sprint(i)
			case it.Type == "checkbox", it.ID == "7" && i%100 == 17:
				values = append(values, value("second"))
			}
			r.Items = append(r.Items, formservice.Answer{ID: it.ID, Type: it.Type, Index: it.Index, Values: values})
		}
		results = append(results, r)
	}
	return formservice.NewForm("people", items, results)
}

// privateColumns are the columns of the form, with their rules.
const privateColumns = `columns:
  - {name: id, from: result_id, type: int64}
  - {name: mail, from: "item:1", type: string, pii: hmac}
  - {name: phone, from: "item:2", type: string, pii: redact}
  - {name: name, from: "item:3", type: string, pii: truncate(2)}
  - {name: friends, from: "item:4", type: list<string>, pii: hmac, explode: true}
  - {name: tags, from: "item:5", type: list<string>, pii: redact}
  - {name: note, from: "item:6", type: string, pii: drop}
  - {name: card, from: "item:7", type: string, pii: hmac, on_error: reject}
  - {name: amount, from: "item:8", type: int64}
  - {name: ip, from: "meta:user_ip", type: string, pii: drop}
`

// TestPersonalDataNowhere runs a definition with rules for personal data to its end, into too many
// rejects and into an outage that leaves a checkpoint, and greps every byte that was written, also
// by logs and reports. Without the rules the same commands show the values in every kind of file,
// so that the grep is known to find them there. The rules themselves are transform's to show.
func TestPersonalDataNowhere(t *testing.T) {
	for _, rules := range []bool{true, false} {
		t.Run(fmt.Sprintf("rules=%v", rules), func(t *testing.T) {
			root, inputs := t.TempDir(), t.TempDir()
			service, server := newService(testKey, privateForm())
			defer server.Close()
			columns := privateColumns
			if !rules {
				columns = strings.NewReplacer(", pii: hmac", "", ", pii: redact", "", ", pii: truncate(2)", "", ", pii: drop", "").Replace(columns)
			}
			env := map[string]string{definition.KeyVariable: testKey, definition.HMACKeyVariable: hmacCanary, "HOME": root}
			do := func(code int, name, schema string) {
				t.Helper()
				file := write(t, inputs, name+".yaml", fmt.Sprintf(`version: 1
name: %s
source: {base_url: %q, account: acme, timezone: UTC, requests: {retries: 0, concurrency: 1}}
forms: [people]
extract: {from: 2026-01-01, to: 2026-01-03, window: 6h}
state: %s/state
schema:
  %s
load: [{path: "%[3]s/%[1]s/{form}.csv"}, {path: "%[3]s/%[1]s/{form}.json"}, {path: "%[3]s/%[1]s/lake/{form}/", format: ndjson, partition: day}]
`, name, server.URL, root, strings.ReplaceAll(strings.TrimSpace(schema+columns), "\n", "\n  ")))
				var out, told bytes.Buffer
				args := []string{"run", file, "--log-level", "debug", "--report", filepath.Join(root, name+".html"), "--metrics", filepath.Join(root, "metrics.prom")}
				if got := Main(args, strings.NewReader(""), &out, &told, func(name string) (string, bool) { v, ok := env[name]; return v, ok }); got != code {
					t.Errorf("%s ended with %d, want %d:\n%s", name, got, code, &told)
				}
				write(t, root, "told/"+name, out.String()+told.String())
			}
			do(console.ExitOK, "all", "max_rejects: 20\n")
			do(console.ExitData, "strict", "max_rejects: 0\n")
			do(console.ExitData, "unknown", "unknown: fail\n")
			var asked atomic.Int64
			service.Before = func(r formservice.Request) {
				if r.Transaction == formservice.TransactionResults && asked.Add(1) == 6 {
					service.SetFaults("busy=1")
				}
			}
			do(console.ExitTemporary, "cut", "max_rejects: 20\n")
			leaky, all := privateUnder(t, root)
			for _, kind := range []string{"all/people.csv", "all/people.json", "all/people__friends.csv", "all/lake/people/dt=*/*", "all/people.csv.rejects.jsonl", "state/checkpoint/*/*-rows"} {
				there := matching(kind, all)
				if shows := len(matching(kind, leaky)) > 0; len(there) == 0 || shows == rules {
					t.Errorf("of %s there are %v, and they show personal data: %v", kind, there, shows)
				}
			}
			for _, never := range []string{"*.html", "metrics.prom", "told/*", "all/*.manifest.json", "all/lake/people/_manifest.json"} { // of a run that shows what it may
				if len(matching(never, all)) == 0 || len(matching(never, leaky)) > 0 {
					t.Errorf("of %s there are %v, and %v show values", never, matching(never, all), matching(never, leaky))
				}
			}
			if rules && len(leaky) > 0 {
				t.Errorf("%v hold personal data", leaky)
			}
			if lines, _ := leaksUnder(t, root, hmacCanary); len(lines) > 0 {
				t.Errorf("the key of pii: hmac is in %v", lines)
			}
		})
	}
}

// privateUnder names the files under a folder that hold a private value as it is, in other case or
// in hex, and all files.
func privateUnder(t testing.TB, root string) (leaky, all []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(root, path)
		all = append(all, filepath.ToSlash(name))
		for _, shape := range []string{strings.ToLower(privateWord), hex.EncodeToString([]byte(privateWord))} {
			if bytes.Contains(bytes.ToLower(data), []byte(shape)) || strings.Contains(strings.ToLower(name), shape) {
				leaky = append(leaky, filepath.ToSlash(name))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return leaky, all
}

func matching(pattern string, names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		ok, err := filepath.Match(pattern, name)
		return !ok || err != nil
	})
}

// gone is an error but that a file is not there any more.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
