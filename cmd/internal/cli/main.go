// Package cli is formetl's command line. The command verify, for example, is made by verifyCommand,
// which returns a *cobra.Command, and its work is done by the function verify. Both lie in the file
// of the command's name; forms, status, publish, count and copy lie in
// transactions.go, and the commands of schema and state in the files that begin so.
//
// A command has its flags in a struct. It gets its streams, its environment and its log as a
// process, so that tests can give it others. From there all commands take the same way: start
// checks the flags and begins the log, open reads definitions (or define makes one of flags), a
// function of pipelines or pipelines/upkeep does the work and returns a report, and the report is
// printed as a table or, with --json, as one value. The error of a command knows its exit code.
//
// The package holds no logic of a run. What formetl-worker needs too is in package console, and
// package report makes the files of --report and --metrics.
//
// Begin reading at Main, then process.go and run.go.
package cli

import (
	"context"
	"io"
	"log"
	"strings"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/console"
)

// Main runs one command and returns its exit code (contract.md, "Exit
// codes"). Data goes to stdout, everything else to stderr; lookup reads the
// environment.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer, lookup func(string) (string, bool)) int {
	ctx, stopCatching := console.OnSignal(context.Background()) // before work that takes time
	defer stopCatching()
	stdout, stderr = console.Freed(ctx, stdout), console.Freed(ctx, stderr)
	// The standard library logs on its own, such as net/http on an unexpected answer. Its lines
	// are no records of formetl, and may hold parts of an answer, so they are discarded.
	log.SetOutput(io.Discard)
	p := &process{stdin: stdin, stdout: stdout, stderr: stderr, lookup: lookup, log: console.NewLog(stderr, args), restore: func() {}}
	defer func() { p.restore() }()
	return p.run(ctx, stopCatching, rootCommand(p), args)
}

// run runs a command and returns its exit code, see console.Run.
func (p *process) run(ctx context.Context, stopCatching func(), root *cobra.Command, args []string) int {
	return console.Run(ctx, stopCatching, root, args, p.log, func(err error, command string) string { return console.Hint(err, command, p.resumable) })
}

// Commands returns all commands for tools that describe them, such as generators of help.
func Commands() *cobra.Command {
	return rootCommand(&process{log: console.NewLog(io.Discard, nil)})
}

func rootCommand(p *process) *cobra.Command {
	root := console.Root(&cobra.Command{
		Use:   "formetl",
		Short: "Export the results of online forms to CSV, NDJSON, JSON, Arrow, Parquet and Excel",
		Long: `formetl reads the results of online forms from a Form Results Service and
writes each result once: as CSV, NDJSON, JSON, Arrow, Parquet or Excel, or to a
table of PostgreSQL.

Data goes to standard output, everything else to standard error. The API key comes
from the file of --api-key-file, else from where a definition (the file for formetl run)
says, else from the variable FORMETL_API_KEY, but never from the command line itself.

To complete commands and flags with the Tab key: formetl completion --help.

Exit codes: 0 done; 64 wrong flags; 65 a problem with the data; 66 no such form
or account; 69 the service failed; 70 a bug in formetl; 73 an output cannot be
created; 74 reading or writing failed; 75 temporary, run it again; 77 the API key
was refused; 78 the definition is wrong; 129, 130, 143 stopped by a
signal: run it again, as after 75; runs and exports go on from there.`,
		Example: `  formetl demo
  formetl export --base-url https://fs1.example.com --account acme --form form1 -o form1.csv
  formetl run feedback.yaml`,
	}, p.log)
	root.SetIn(p.stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	root.SetHelpCommand(helpCommand(p))
	root.SetUsageTemplate(usageTemplate(root))
	for _, group := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Get data:", []*cobra.Command{demoCommand(p), exportCommand(p), previewCommand(p), countCommand(p), formsCommand(p)}},
		{"Define a pipeline:", []*cobra.Command{initCommand(p), validateCommand(p), planCommand(p), schemaCommand(p)}},
		{"Run and watch:", []*cobra.Command{runCommand(p), replayCommand(p), verifyCommand(p), doctorCommand(p), stateCommand(p)}},
		{"Look after:", []*cobra.Command{cleanCommand(p), statusCommand(p), publishCommand(p), copyCommand(p)}},
	} {
		root.AddGroup(&cobra.Group{ID: group.title, Title: group.title})
		for _, cmd := range group.commands {
			cmd.GroupID = group.title
			root.AddCommand(cmd)
		}
	}
	completeDefinitions(root.Commands())
	return root
}

// completeDefinitions lets shells complete the names of definitions by the files' extensions.
func completeDefinitions(commands []*cobra.Command) {
	for _, cmd := range commands {
		completeDefinitions(cmd.Commands())
		if strings.Contains(cmd.Use, "DEFINITION") {
			cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
				return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
			}
		}
	}
}
