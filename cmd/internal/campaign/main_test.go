package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/cmd/internal/campaign/model"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load/loadtest/needs"
)

// TestLiarIsNoticed has a program that ends well, whatever it is told, and does
// nothing.
func TestLiarIsNoticed(t *testing.T) {
	liar := needs.Program(t, "true", "apt-get install coreutils")
	var out, problems bytes.Buffer
	code := run([]string{"-lives", "2", "-seed", "1", "-formetl", liar, "-lawful"}, &out, &problems)
	if code != 1 || !strings.Contains(problems.String(), "2 of 2 lives went wrong") {
		t.Errorf("it ended with %d: %s", code, &problems)
	}
	if text := out.String(); !strings.Contains(text, "repeat it with -lives 1 -seed 1\n") || !strings.Contains(text, "version: 1\nname: campaign") || !strings.Contains(text, "the folder is ") {
		t.Errorf("it does not tell the seed, the definition and the folder:\n%s", text)
	}
}

// TestEndsAreChecked tells which ends of a process are to be expected.
func TestEndsAreChecked(t *testing.T) {
	const says = "the service ignores the bounds of dates; `formetl doctor` shows what it honours"
	dates := formservice.Faults{IgnoreDates: true}
	for _, c := range []struct {
		name string
		step step
		o    outcome
		want bool

		faults   formservice.Faults
		needless bool // the definition needs no dates
	}{
		{name: "a service that ignores dates", o: outcome{code: 65, stderr: says}, want: true, faults: dates},
		{name: "it, and nobody says so", o: outcome{code: 65}, faults: dates},
		{name: "it, and no dates are needed", o: outcome{code: 65, stderr: says}, faults: dates, needless: true},
		{name: "it, and a range needs them", step: step{kind: stepRange}, o: outcome{code: 65, stderr: says}, want: true, faults: dates, needless: true},
		{name: "a lawful service", o: outcome{code: 65, stderr: says}},
		{name: "a change with every request", step: step{restless: true}, o: outcome{code: 75}, want: true},
		{name: "data at every request", step: step{restless: true}, o: outcome{code: 65}},
		{name: "many changes", step: step{changes: []int{1, 2, 3, 4, 5}}, o: outcome{code: 75}},
		{name: "well", want: true},
		{name: "busy for no reason", step: step{}, o: outcome{code: 75}, want: false},
		{name: "in a storm", step: step{storm: 0.1}, o: outcome{code: 75}, want: true},
		{name: "data in a storm", step: step{storm: 0.1}, o: outcome{code: 65}, want: false},
		{name: "killed", step: step{fault: "parts:1"}, o: outcome{code: -1, killed: true}, want: true},
		{name: "killed by nobody", step: step{}, o: outcome{code: -1, killed: true}, want: false},
		{name: "terminated", step: step{signal: 15}, o: outcome{code: 143, stopped: true}, want: true},
		{name: "terminated before it was told to", step: step{signal: 15}, o: outcome{code: 143}, want: false},
		{name: "interrupted and terminated", step: step{signal: 2}, o: outcome{code: 143, stopped: true}, want: false},
		{name: "a bug", step: step{storm: 0.1}, o: outcome{code: 70}, want: false},
		{name: "a panic", step: step{}, o: outcome{stderr: "panic: nil map"}, want: false},
	} {
		l := &life{key: "a key of some length", def: &definition{}, service: &service{form: &formservice.Server{Faults: c.faults}}}
		l.def.DatesIgnored = c.needless
		if err := l.mayEnd(&c.step, &c.o); (err == nil) != c.want {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestReplayMayReadUndated tells of which replays results without a date are expected.
func TestReplayMayReadUndated(t *testing.T) {
	letters := func(window string) *model.Look {
		return &model.Look{Files: map[string][]byte{"_rejects/1.jsonl": []byte(`{"result_id":1,"window":"` + window + `"}` + "\n")}}
	}
	dated := &output{last: letters("2026-01-01 00:00:00/2026-01-02 00:00:00")}
	undated := &output{last: letters("undated")}
	file := &output{Output: model.Output{Name: "file.csv"}, last: &model.Look{}}
	for _, c := range []struct {
		name              string
		def               definition
		undated, replaces bool
	}{
		{name: "a window", def: definition{outputs: []*output{dated}}},
		{name: "a window of an incremental run", def: definition{incremental: true, outputs: []*output{dated}}},
		{name: "no window", def: definition{outputs: []*output{dated, undated}}, undated: true},
		{name: "no window of an incremental run", def: definition{incremental: true, outputs: []*output{undated}}, undated: true, replaces: true},
		{name: "a file", def: definition{outputs: []*output{dated, file}}, undated: true},
		{name: "a range", def: definition{from: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), outputs: []*output{undated, file}}},
	} {
		c.def.Zone = time.UTC
		var f model.Facts
		if c.def.facts(&step{kind: stepReplay}, &outcome{}, &f); f.Undated != c.undated || f.Replaces != c.replaces || f.Follows != c.replaces {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
}

// TestKeyIsFound looks for the key in every spelling.
func TestKeyIsFound(t *testing.T) {
	key := apiKey("k/5f2a9c1177+=4%z")
	for text, want := range map[string]bool{
		"nothing": false, "fs_api_key=k/5f2a9c1177+=4%z": true, "k%2F5f2a9c1177%2B%3D4%25z": true, "…5f2a9c1177+=4…": true,
	} {
		if key.in([]byte(text)) != want {
			t.Errorf("%s: not %t", text, want)
		}
	}
}
