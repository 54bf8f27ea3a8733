package main

import (
	"bytes"
	"encoding/csv"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/formetl/formetl/load/loadtest/needs"
)

// calc is LibreOffice Calc with a profile of its own.
type calc struct {
	*testing.T
	program, profile, folder string
}

func newCalc(t *testing.T) calc {
	t.Helper()
	program := needs.Program(t, "soffice", "apt-get install --no-install-recommends libreoffice-calc-nogui")
	profile := url.URL{Scheme: "file", Path: filepath.ToSlash(t.TempDir())}
	return calc{T: t, program: program, profile: profile.String(), folder: t.TempDir()}
}

// The ways to open a CSV file: separator, quotes, UTF-8, from the first line, English,
// whether quoted fields are text, whether more than plain numbers is looked for, which is
// what Excel does.
const (
	importEager = "CSV:44,34,76,1,,1033,false,true"
	// importDivided divides at ; and TAB too, as the dialog proposes.
	importDivided = "CSV:44/59/9,34,76,1,,1033,false,true"
	// exportCSV writes cells as they are shown.
	exportCSV = "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,true,false,false,false"
)

// convert opens a file, writes it in another format, and gives that.
func (c calc) convert(file, filter, to string) []byte {
	c.Helper()
	args := []string{"-env:UserInstallation=" + c.profile, "--headless", "--norestore"}
	if filter != "" {
		args = append(args, "--infilter="+filter)
	}
	out := c.TempDir()
	cmd := exec.CommandContext(c.Context(), c.program, append(args, "--convert-to", to, "--outdir", out, file)...)
	cmd.Env = append(os.Environ(), "HOME="+c.folder, "LC_ALL=C.UTF-8")
	told, err := cmd.CombinedOutput()
	if err != nil {
		c.Fatalf("soffice: %v\n%s", err, told)
	}
	extension, _, _ := strings.Cut(to, ":")
	base := filepath.Base(file)
	data, err := os.ReadFile(filepath.Join(out, strings.TrimSuffix(base, filepath.Ext(base))+"."+extension))
	if err != nil {
		c.Fatalf("soffice wrote nothing: %v\n%s", err, told)
	}
	return data
}

// cells reads a CSV file.
func (c calc) cells(data []byte) [][]string {
	c.Helper()
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(data, []byte("\uFEFF"))))
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	if err != nil {
		c.Fatal(err)
	}
	return rows
}
