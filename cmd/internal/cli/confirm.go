package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"
)

// confirm asks a yes-or-no question where somebody can answer it. Nobody can
// where standard input is not a terminal, or where logs are JSON: that is
// wrong usage, not a yes.
func (a *app) confirm(ctx context.Context, question string) (bool, error) {
	if !isTerminal(a.stdin) || a.logFormat == formatJSON {
		return false, &usageError{errors.New("nobody is there to ask: give --yes to do it without asking; nothing was sent")}
	}
	return a.ask(ctx, question)
}

// ask reads the answer. Anything but y or yes is a no.
func (a *app) ask(ctx context.Context, question string) (bool, error) {
	fmt.Fprint(a.stderr, question)
	answer := make(chan string, 1)
	go func() {
		line, err := bufio.NewReader(a.stdin).ReadString('\n')
		if err != nil {
			line = "" // an unfinished line is no answer
		}
		answer <- line
	}()
	select {
	case <-ctx.Done(): // the reading goroutine ends with the process
		fmt.Fprintln(a.stderr)
		return false, context.Cause(ctx)
	case line := <-answer:
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			return true, nil
		}
	}
	fmt.Fprintln(a.stderr, "Nothing was sent.")
	return false, nil
}

func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) //nolint:gosec // a descriptor is small
}
