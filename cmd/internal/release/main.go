// Command release writes what a release holds beside its program: shell completions
// and manual pages.
//
//	go run ./cmd/internal/release DIR SECONDS
//
// They are made from the commands, so no copy of them is kept. DIR/completions has a
// file for each shell, and DIR/man one for each command. SECONDS, since 1970, are the
// date of the pages.
//
// Its tests have the programs that people use formetl with judge what a release holds and
// what it writes. Shells, groff, cron, systemd, Prometheus and the types of Kubernetes read
// completions, pages and the recipes of pipelines/examples/recipes; the definitions of
// pipelines/examples run against the test service, and in what the image of
// cmd/formetl/Dockerfile would hold. DuckDB, PostgreSQL and LibreOffice Calc read files and
// tables that the commands loaded, by the statements that `formetl schema ddl` prints, and
// every cell is compared with what was written. Runs that load a table are killed at each point.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"github.com/formetl/formetl/cmd/internal/cli"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return errors.New("give a folder and the seconds of a date")
	}
	seconds, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil {
		return fmt.Errorf("the date: %w", err)
	}
	return write(args[0], time.Unix(seconds, 0).UTC())
}

// write fills the folder.
func write(dir string, date time.Time) error {
	completions, man := filepath.Join(dir, "completions"), filepath.Join(dir, "man")
	for _, folder := range []string{completions, man} {
		if err := os.MkdirAll(folder, 0o750); err != nil {
			return err
		}
	}
	root := cli.Commands()
	for name, generate := range shells(root) {
		if err := generate(filepath.Join(completions, name)); err != nil {
			return err
		}
	}
	root.DisableAutoGenTag = true
	literally(root)
	return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "formetl", Manual: "formetl", Date: &date}, man)
}

// literally has the texts of a command and those below it shown as they are written. Their pages are
// made through Markdown, which would drop <id> as a tag.
func literally(cmd *cobra.Command) {
	escape := strings.NewReplacer("<", `\<`, "*", `\*`)
	cmd.Short, cmd.Long = escape.Replace(cmd.Short), escape.Replace(cmd.Long)
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { f.Usage = escape.Replace(f.Usage) })
	for _, c := range cmd.Commands() {
		literally(c)
	}
}

// shells are the completions' files, named as each shell looks for them.
func shells(root *cobra.Command) map[string]func(file string) error {
	return map[string]func(string) error{
		"formetl.bash": func(file string) error { return root.GenBashCompletionFileV2(file, true) },
		"_formetl":     root.GenZshCompletionFile,
		"formetl.fish": func(file string) error { return root.GenFishCompletionFile(file, true) },
		"formetl.ps1":  root.GenPowerShellCompletionFileWithDesc,
	}
}
