package load

import (
	"reflect"
	"testing"
	"time"
)

func TestManifestKeepsWhatIsKnownOfColumns(t *testing.T) {
	column := Column{
		Name: "colours", Type: "list<string>", From: "item:7", Label: "Your colours", PII: "truncate(3)",
		Choices: []string{"red", "blue"}, ItemType: "checkbox", Index: 7,
	}
	m := Manifest{Format: "csv", RunID: "r", CreatedAt: time.Unix(0, 0), Schema: []Column{column}, Parts: []Part{}}
	data, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	read, err := DecodeManifest(data)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(read.Schema, []Column{column}) {
		t.Errorf("the columns are %+v after encoding, want %+v", read.Schema, column)
	}
	m.Schema[0].Choices = []string{"\xff"}
	if _, err := m.Encode(); err != nil || m.Schema[0].Choices[0] != "\xff" {
		t.Errorf("encoding changed the caller's choices to %q, %v", m.Schema[0].Choices, err)
	}
}
